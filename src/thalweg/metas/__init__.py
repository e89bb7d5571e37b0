"""Meta-learners: who is believed. One a file; each serves pools, whose members stay, and covers, whose come and go."""

from thalweg.metas._base import Meta
from thalweg.metas.ada_normal_hedge import AdaNormalHedge
from thalweg.metas.adapt_ml_prod import AdaptMLProd
from thalweg.metas.coin_betting import CoinBetting
from thalweg.metas.hedge import Hedge

__all__ = ["AdaNormalHedge", "AdaptMLProd", "CoinBetting", "Hedge", "Meta"]
