"""The counters every learner keeps, as entries of one integer array that kernels write to."""

ROUNDS = 0  # rounds played
PROJECTIONS = 1  # projections onto the learner's domain
GRADIENTS = 2  # gradients the learner used
VALUES = 3  # function values the learner used
CLIPPED = 4  # gradients scaled down to the bound
FRESH = 5  # 1 while the stored decision belongs to the present round
ENTRIES = 6
