"""Online PCA: follow a k-dimensional subspace of R^d, with regret bounds.

`EfficientPCA` keeps its regret small on every interval with one eigendecomposition a round. The other learners are for
comparison. `sampling` draws projections, `best_subspace` and `dyadic_regret` look back on a run.
"""

from thalweg.pca import sampling
from thalweg.pca._base import PCALearner, RankWarning
from thalweg.pca.adaptive import AdaptivePCA
from thalweg.pca.descent import DescentPCA
from thalweg.pca.efficient import EfficientPCA
from thalweg.pca.hindsight import Subspace, SubspaceRegret, best_subspace, dyadic_regret
from thalweg.pca.oja import OjaPCA
from thalweg.pca.yuan_lamperski import YuanLamperskiPCA

__all__ = [
    "AdaptivePCA",
    "DescentPCA",
    "EfficientPCA",
    "OjaPCA",
    "PCALearner",
    "RankWarning",
    "Subspace",
    "SubspaceRegret",
    "YuanLamperskiPCA",
    "best_subspace",
    "dyadic_regret",
    "sampling",
]
