"""What scoring needs before it starts."""

from __future__ import annotations

import pytest
import yaml

from pipelines.inputs.validate import ValidatedInputs
from pipelines.scoring.require import require_systems
from schemas.errors import InputError


def test_the_error_about_a_log_without_systems_has_the_line_to_write() -> None:
    with pytest.raises(InputError) as caught:
        require_systems(ValidatedInputs({}, {}, (), max_grade=0.0, from_behaviour=True))
    assert caught.value.where == "inputs.impressions.columns.system"
    line = caught.value.hint.partition("or write ")[2].partition(" where")[0]
    assert yaml.safe_load(line) == {"columns": {"system": "'production'"}}
