"""Names of the files that hold trained weights."""

BEST_WEIGHTS = "best.safetensors"  # in the folder of a run
WEIGHTS = "backbone"  # the kind of file, as `load_tensors` asks for it
