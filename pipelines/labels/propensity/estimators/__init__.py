"""Estimators of position bias; a new estimator is a new file here.

all_pairs is the default; em, trust_bias and ubm fit single counts; sdbn, dcm and first_click are session models in
closed form; rates (randomized, coec, none) are ratios of click rates.
"""
