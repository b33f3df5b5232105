"""The verifier: `sp.verify`, and in `safepallas.verification` what it returns."""
