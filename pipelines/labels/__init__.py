"""Labels from a search log: what people did with results, corrected for noise and position bias.

In: impressions, interactions, and judgments where there are any. Out: labels, propensities, denoise_funnel, and rows of
quarantine. Entry: `obtain_labels` inside a run, `build_labels` without one.
Reading order: settings, build, denoise/, history, propensity/, grade, judgments, log_shape, publish, obtain;
log_days and window are for incremental labels; agreement describes how far behaviour and judges agree. pool, opinions
and prior make the posterior of every document.
"""
