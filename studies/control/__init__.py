"""Study controllers for linear systems.

LQR, an integrator, a preview, H-infinity, GPC, Scream and ours on known plants with changing costs and disturbances:
cost, queries and time, with pictures and a page that explains them. If you interrupt it, the same command continues.

\b
thalweg study control
thalweg study control --small --out /tmp/look
"""
