# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tables reach pyarrow, pandas and polars with their types and without a copy."""

import polars
import pyarrow
import pytest

import unspin_lab
from conftest import SCENARIO


@pytest.fixture(scope="module")
def ran():
    return unspin_lab.run(SCENARIO)


def address(column):
    return column.chunk(0).buffers()[1].address


def test_pyarrow_shares_the_memory(ran):
    table = pyarrow.table(ran.vcpus)
    again = ran.vcpus.to_arrow()
    assert table == again
    assert table.num_rows == len(ran.vcpus) == ran.vcpus.num_rows == 4
    assert table.column_names == ran.vcpus.column_names
    # Two hand-overs, one memory.
    assert address(table["operations"]) == address(again["operations"])
    assert table.to_pylist() == ran.vcpus.to_pylist()
    types = {name: str(table.schema.field(name).type) for name in ("vm", "vcpu", "operations_per_second")}
    assert types == {"vm": "string", "vcpu": "int64", "operations_per_second": "double"}


def test_columns_say_what_they_are(ran):
    schema = pyarrow.schema(ran.vms)
    assert schema == pyarrow.table(ran.vms).schema
    described = ran.vms.describe()
    assert described["steal_share_percent"] == "Share of all time in which a vCPU waited for a pCPU; percent."
    assert schema.field("lock").metadata[b"description"] == described["lock"].encode()
    assert schema.metadata[b"unspin.commit"] == unspin_lab.COMMIT.encode()


def test_pandas_shares_the_memory(ran):
    frame = ran.vcpus.to_pandas()
    assert list(frame.columns) == ran.vcpus.column_names
    assert frame["operations"].sum() == sum(ran.vcpus["operations"])
    column = frame["operations"].array.__arrow_array__()
    assert address(column) == address(ran.vcpus.to_arrow()["operations"])


def test_polars_shares_the_memory(ran):
    frame = polars.DataFrame(ran.vcpus)
    assert frame.equals(ran.vcpus.to_polars())
    assert frame["operations"].to_list() == ran.vcpus["operations"]
    assert address(pyarrow.chunked_array([frame["operations"].to_arrow()])) == address(ran.vcpus.to_arrow()["operations"])


def test_nulls_and_sweeps():
    compared = unspin_lab.compare(SCENARIO, ["strict"], seeds=1)
    stock = compared.policies.to_pylist()[0]
    assert stock["policy"] == "stock" and stock["throughput_ratio_to_stock"] is None
    assert pyarrow.table(compared.policies)["throughput_ratio_to_stock"].null_count == 1
    rows = pyarrow.table(unspin_lab.sweep(SCENARIO, {"vm.vcpus": [1, 2]}).rows)
    assert rows["set_vm_vcpus"].to_pylist() == [1, 1, 2, 2]


def test_a_table_outlives_its_run():
    table = pyarrow.table(unspin_lab.run(SCENARIO).vcpus)
    unspin_lab.run(SCENARIO, seed=6)
    assert sum(table["operations"].to_pylist()) == sum(unspin_lab.run(SCENARIO).vcpus["operations"])


def test_text(ran):
    lines = str(ran.vms).splitlines()
    assert lines[0].split()[:3] == ["VM", "lock", "vCPUs"] and "ticket" in lines[2]
    assert "VMs" in str(ran) and "pCPUs" in str(ran)
    assert repr(ran.vms).startswith("<unspin_lab.Table of 2 rows: vm, group, lock")
    with pytest.raises(KeyError, match="there is no column vmm; there are vm, group"):
        ran.vms["vmm"]
