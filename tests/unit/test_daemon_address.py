"""The file in which a daemon publishes its address."""

from pathlib import Path

from newton.runtime.daemon_address import ADDRESS_FILE, publish_address, read_address


def test_a_second_daemon_neither_overwrites_nor_deletes_the_address_of_the_first(tmp_path: Path) -> None:
    # R14
    with publish_address(tmp_path, "http://first") as is_published:
        with publish_address(tmp_path, "http://second") as is_second_published:
            address = read_address(tmp_path)
        assert address and (address.url, is_published, is_second_published) == ("http://first", True, False)
        assert read_address(tmp_path) == address
    assert read_address(tmp_path) is None


def test_the_file_of_a_killed_daemon_is_replaced(tmp_path: Path) -> None:
    # R14
    (tmp_path / ADDRESS_FILE).write_text('{"url": "http://killed", "version": "1"}')
    with publish_address(tmp_path, "http://new") as is_published:
        address = read_address(tmp_path)
    assert address and (address.url, is_published) == ("http://new", True)
    with publish_address(tmp_path, "http://new"):
        assert read_address(tmp_path) not in {None, address}, "each run of a daemon has an id"
