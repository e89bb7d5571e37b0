"""Parts that learners and estimators share: declared state, and kernels for it."""
