# SPDX-License-Identifier: Apache-2.0
"""Models that scikit-learn, LightGBM and XGBoost learn from a table of random numbers."""
import numpy as np
from rows import Row

N_FEATURES = 6


def table():
    """Features, classes, and targets."""
    random = np.random.RandomState(0)
    x = random.randn(120, N_FEATURES).astype(np.float32)
    label = (x[:, 0] + 0.3 * random.randn(120) > 0).astype(np.int64) + (x[:, 1] > 0.5)
    target = (x @ random.randn(N_FEATURES) + np.sin(x[:, 2])).astype(np.float32)
    return x, label, target


def asked():
    return np.random.RandomState(1).randn(9, N_FEATURES).astype(np.float32)


def write(path, encoded):
    with open(path, "wb") as file:
        file.write(encoded.SerializeToString())
    return encoded.graph.input[0].name


def learned(make, target="label", positive=False, zipmap=True, **options):
    """@zipmap: whether the converter of a classifier has this option, which makes maps of the scores."""
    def export(path):
        from skl2onnx import to_onnx
        from sklearn.base import is_classifier
        x, label, number = table()
        if positive:
            x = np.abs(x)
        model = make()
        model.fit(x, {"label": label, "number": number, "bit": (label > 0).astype(np.int64)}[target])
        settings = {id(model): {"zipmap": False}} if is_classifier(model) and zipmap else None
        name = write(path, to_onnx(model, x[:1], options=settings, **options))
        return {name: np.abs(asked()) if positive else asked()}
    return export


def boosted(kind, target):
    def export(path):
        import onnxmltools
        from onnxmltools.convert.common.data_types import FloatTensorType
        x, label, number = table()
        wanted = {"label": label, "number": number, "bit": (label > 0).astype(np.int64)}[target]
        classifies = target != "number"
        shape = [("x", FloatTensorType([None, N_FEATURES]))]
        if kind == "lightgbm":
            import lightgbm
            make = lightgbm.LGBMClassifier if classifies else lightgbm.LGBMRegressor
            model = make(n_estimators=12, num_leaves=7, min_child_samples=3, verbose=-1).fit(x, wanted)
            encoded = onnxmltools.convert_lightgbm(model, initial_types=shape, zipmap=False)
        else:
            import xgboost
            make = xgboost.XGBClassifier if classifies else xgboost.XGBRegressor
            model = make(n_estimators=12, max_depth=3, base_score=0.5).fit(x, wanted)
            encoded = onnxmltools.convert_xgboost(model, initial_types=shape)
        return {write(path, encoded): asked()}
    return export


def words(make):
    def export(path):
        from skl2onnx import to_onnx
        from skl2onnx.common.data_types import StringTensorType
        texts = np.array(["the red fox", "a red dog", "the blue dog runs", "a fox runs", "blue sky"]).reshape(-1, 1)
        model = make().fit(texts[:, 0] if "Vectorizer" in make.__name__ else texts)
        name = write(path, to_onnx(model, initial_types=[("x", StringTensorType([None, 1]))]))
        return {name: texts[::-1].astype(object)}
    return export


def skl(module, name, *arguments, **options):
    def make():
        import importlib
        return getattr(importlib.import_module(f"sklearn.{module}"), name)(*arguments, **options)
    make.__name__ = name
    return make


def piped(*steps):
    def make():
        from sklearn.pipeline import make_pipeline
        return make_pipeline(*(step() for step in steps))
    return make


def columns():
    from sklearn.compose import ColumnTransformer
    from sklearn.preprocessing import MinMaxScaler, StandardScaler
    return ColumnTransformer([("a", StandardScaler(), [0, 1, 2]), ("b", MinMaxScaler(), [3, 4, 5])])


def kernel():
    from sklearn.gaussian_process import GaussianProcessRegressor, kernels
    return GaussianProcessRegressor(kernels.RBF() + kernels.WhiteKernel(), alpha=0.1)


SCALED = skl("preprocessing", "StandardScaler")
TREES = {"n_estimators": 8, "max_depth": 4, "random_state": 0}
LEARNERS = {
    "logistic": learned(skl("linear_model", "LogisticRegression")),
    "linear": learned(skl("linear_model", "LinearRegression"), "number"),
    "sgd": learned(skl("linear_model", "SGDClassifier", random_state=0)),
    "ridge": learned(skl("linear_model", "RidgeClassifier")),
    "tree": learned(skl("tree", "DecisionTreeClassifier", random_state=0)),
    "forest": learned(skl("ensemble", "RandomForestClassifier", **TREES)),
    "forest_number": learned(skl("ensemble", "RandomForestRegressor", **TREES), "number"),
    "extra_trees": learned(skl("ensemble", "ExtraTreesClassifier", **TREES)),
    "gradient": learned(skl("ensemble", "GradientBoostingClassifier", n_estimators=6, random_state=0)),
    "adaboost": learned(skl("ensemble", "AdaBoostClassifier", n_estimators=5, random_state=0)),
    "isolation": learned(skl("ensemble", "IsolationForest", n_estimators=8, random_state=0),
                         target_opset={"": 18, "ai.onnx.ml": 3}),
    "svc": learned(skl("svm", "SVC", probability=True, random_state=0)),
    "svr": learned(skl("svm", "SVR"), "number"),
    "one_class": learned(skl("svm", "OneClassSVM")),
    "linear_svc": learned(skl("svm", "LinearSVC", random_state=0), zipmap=False),
    "neighbours": learned(skl("neighbors", "KNeighborsClassifier", 5)),
    "neighbours_number": learned(skl("neighbors", "KNeighborsRegressor", 4, weights="distance"), "number"),
    "gauss": learned(kernel, "number"),
    "bayes": learned(skl("naive_bayes", "GaussianNB")),
    "bayes_counts": learned(skl("naive_bayes", "MultinomialNB"), positive=True),
    "perceptron": learned(skl("neural_network", "MLPClassifier", (16,), random_state=0, max_iter=30)),
    "means": learned(skl("cluster", "KMeans", 4, n_init=1, random_state=0)),
    "mixture": learned(skl("mixture", "GaussianMixture", 3, random_state=0)),
    "discriminant": learned(skl("discriminant_analysis", "LinearDiscriminantAnalysis")),
    "components": learned(piped(SCALED, skl("decomposition", "PCA", 3))),
    "pipeline": learned(piped(SCALED, skl("preprocessing", "PolynomialFeatures", 2),
                              skl("linear_model", "LogisticRegression", max_iter=300))),
    "columns": learned(columns),
    "normal": learned(piped(skl("preprocessing", "Normalizer"), skl("preprocessing", "RobustScaler"))),
    "bins": learned(skl("preprocessing", "KBinsDiscretizer", 4, encode="ordinal", quantile_method="averaged_inverted_cdf")),
    "imputed": learned(piped(skl("impute", "SimpleImputer"), skl("feature_selection", "SelectKBest", k=3))),
    "voting": learned(lambda: skl("ensemble", "VotingClassifier", [
        ("a", skl("linear_model", "LogisticRegression")()), ("b", skl("naive_bayes", "GaussianNB")())],
        voting="soft", flatten_transform=False)()),
    "bagging": learned(skl("ensemble", "BaggingClassifier", n_estimators=4, random_state=0)),
    "one_hot": words(skl("preprocessing", "OneHotEncoder", sparse_output=False)),
    "ordinal": words(skl("preprocessing", "OrdinalEncoder")),
    "tf_idf": words(skl("feature_extraction.text", "TfidfVectorizer", lowercase=False)),
}
BOOSTED = {f"{kind}_{name}": boosted(kind, target) for kind in ("lightgbm", "xgboost")
           for name, target in (("bit", "bit"), ("class", "label"), ("number", "number"))}
ROWS = [Row("skl2onnx", name, "skl2onnx", make) for name, make in LEARNERS.items()] + \
       [Row("onnxmltools", name, "onnxmltools", make) for name, make in BOOSTED.items()]
