"""scikit-learn's own checks, for every setting that makes a difference."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from thalweg.estimators import TrackingClassifier, TrackingRegressor

REGRESSORS = [
    TrackingRegressor(),
    TrackingRegressor("huber"),
    TrackingRegressor("absolute_error"),
    TrackingRegressor("quantile", quantile=0.5),
    TrackingRegressor(guests=False),
    TrackingRegressor(fit_intercept=False),
    TrackingRegressor(constraint="box", radius=1e3),
    TrackingRegressor("absolute_error", constraint="ball", radius=1e3),
]
CLASSIFIERS = [
    TrackingClassifier(),
    TrackingClassifier("hinge"),
    TrackingClassifier(guests=False),
    TrackingClassifier(fit_intercept=False),
    TrackingClassifier(constraint="ball", radius=30.0),
]


def expected_failures(estimator):
    """A row of weight 2 is not two rows, and their order matters: so it is for every learner of streams."""
    failed = {"check_sample_weight_equivalence_on_dense_data": "rows are learned in their order"}
    if not estimator.fit_intercept or estimator.constraint is not None:
        failed["check_class_weight_classifiers"] = "no intercept, or one that counts rows whatever their weight"
    return failed


@parametrize_with_checks([*REGRESSORS, *CLASSIFIERS], expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
