"""`treadle demo`. Imports nothing, since its workers load only `treadle.cli.demo.app`."""
