"""The kinds of rows of a page, and days as numbers."""

IMPRESSION, CLICK, CART, PURCHASE = range(4)  # kinds of rows of a page
DAY_MICROS = 86_400_000_000
EVERY_DAY = -1
