"""A set and a loss that count what is asked of them: queries are counted here, not by the learner."""

import thalweg as tw


class CountedLoss:
    """A loss that counts how often it is asked."""

    def __init__(self, loss):
        self.loss, self.values, self.gradients = loss, 0, 0

    def value(self, x):
        self.values += 1
        return self.loss.value(x)

    def gradient(self, x):
        self.gradients += 1
        return self.loss.gradient(x)


class CountedSet:
    """A set whose projection counts its calls; learners get its `domain`."""

    def __init__(self, exact):
        self.exact, self.calls = exact, 0
        self.domain = tw.domains.Custom(self.project, exact.shape, exact.center, exact.radius)

    def project(self, y):
        self.calls += 1
        return self.exact.project(y)
