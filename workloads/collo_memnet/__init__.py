"""GPUMemNet rebuilt as a peer: ensembles that classify a training into bins of GPU memory (thesis, chapter 5).

    python -m collo_memnet ROWS.json [--scaled] [--folds honest] [--split shape]

What it does otherwise than collo's predictor is what is compared: it learns from measured rows alone. Sizes and settings
are those of the thesis and of its public code (itu-rad/GPUMemNet, `Ensemble/`); the published weights are not here.
"""
