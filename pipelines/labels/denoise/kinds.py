"""Numbers that the stages share: the kinds of rows of a page, days, and draws by hash."""

IMPRESSION, CLICK, CART, PURCHASE = range(4)  # kinds of rows of a page
DAY_MICROS = 86_400_000_000
EVERY_DAY = -1
LOG_DAY = "log_day"  # the day of the files of a row, which may not be the day of its time
DRAWS = 1 << 20  # hashes are drawn from so many numbers


def limit_draws(share: float) -> int:
    """The number that the draws of a share are below."""
    return DRAWS if share >= 1 else round(share * DRAWS)
