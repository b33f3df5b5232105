"""Every error: its class, its code and its text in one place. `safepallas.errors` is public."""
