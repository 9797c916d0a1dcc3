"""Training: from a corpus to a run's folder, evaluated, resumable, ready to predict.

Names are imported from their files (laconic.training.loop, .run, .settings, …): the settings alone
need no torch.
"""
