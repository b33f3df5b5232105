"""Programs that write files of the project; tests demand that the two agree."""
