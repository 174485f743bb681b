from sklearn.utils.estimator_checks import parametrize_with_checks

from spbn import SPBNClassifier


@parametrize_with_checks(
    [
        SPBNClassifier(model="gbn"),
        SPBNClassifier(patience=0, max_parents=1),
        SPBNClassifier(model="gbn", structure="augmented"),
    ]
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)
