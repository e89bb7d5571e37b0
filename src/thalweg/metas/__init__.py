"""Meta-learners: weights of experts. Each serves a pool, with fixed members, and a cover, where they come and go."""

from thalweg.metas._base import Meta
from thalweg.metas.ada_normal_hedge import AdaNormalHedge
from thalweg.metas.adapt_ml_prod import AdaptMLProd
from thalweg.metas.coin_betting import CoinBetting
from thalweg.metas.hedge import Hedge
from thalweg.metas.leading_history import LeadingHistory
from thalweg.metas.prod import Prod

__all__ = ["AdaNormalHedge", "AdaptMLProd", "CoinBetting", "Hedge", "LeadingHistory", "Meta", "Prod"]
