"""`treadle demo`. Nothing is imported here: its workers load `treadle.cli.demo.app`."""
