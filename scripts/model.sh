#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs python/homenode_model in a venv of its own (build/venv-model), which it installs at
# the versions of python/requirements.txt:
#   scripts/model.sh train rows.parquet --model model.json --card model.html
#   scripts/model.sh folds rows.parquet --models folder
#   scripts/model.sh gain trials.parquet --model gain.ubj --card gain.html --golden golden.json
#   scripts/model.sh spark          tests of --spark, with pyspark and a Java runtime in build/venv-spark
#   scripts/model.sh check          types, lints and format of the package
#   scripts/model.sh test           that, and its tests, with the golden files of internal/model
#   scripts/model.sh golden         writes those golden files again
set -eu
cd "$(dirname "$0")/.."
fail() { echo "model: $*" >&2; exit 2; }
venv=build/venv-model
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail "$(python3 --version) is too old: install Python 3.11 or newer"
if ! cmp -s python/requirements.txt "$venv/installed.txt"; then
	echo "model: installing scikit-learn and XGBoost into $venv" >&2
	rm -rf "$venv"
	python3 -m venv "$venv"
	"$venv/bin/pip" install -q --no-deps -r python/requirements.txt ||
		fail "pip could not install the packages of python/requirements.txt: look at its errors above"
	cp python/requirements.txt "$venv/installed.txt"
fi
# One thread: sums in order are the same bits everywhere.
export PYTHONPATH=python OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
golden() { # FOLDER
	go run ./cmd/homenode-lab sim placements --applications 16 --dataset "$1/rows.parquet" >/dev/null
	"$venv/bin/python" -m homenode_model train "$1/rows.parquet" --trees 5 --model "$1/model.json" --golden "$1/golden.json"
}
gains() { # FOLDER
	"$venv/bin/python" -m homenode_model gain python/tests/testdata/trials.parquet --quick --model "$1/gain.ubj" --golden "$1/golden.json"
}
check() {
	"$venv/bin/mypy" --strict --config-file python/pyproject.toml python/homenode_model &&
		"$venv/bin/ruff" check -q --no-cache --config python/pyproject.toml python &&
		"$venv/bin/ruff" format -q --no-cache --check --config python/pyproject.toml python
}
case ${1-} in
check) check ;;
golden)
	gains internal/model/gain/testdata
	folder=$(mktemp -d)
	trap 'rm -rf "$folder"' EXIT
	golden "$folder"
	cp "$folder/rows.parquet" "$folder/model.json" "$folder/golden.json" internal/model/testdata/
	;;
spark)
	spark=build/venv-spark
	if ! command -v java >/dev/null 2>&1; then
		[ "$(id -u)" = 0 ] || fail "java is missing: install a Java runtime of version 17 or newer, or run this as root"
		echo "model: installing a Java runtime" >&2
		export DEBIAN_FRONTEND=noninteractive
		apt-get -q update >/dev/null
		apt-get -q install -y --no-install-recommends default-jre-headless >/dev/null
	fi
	if [ ! -e "$spark/installed" ]; then
		echo "model: installing Spark into $spark" >&2
		rm -rf "$spark"
		python3 -m venv "$spark"
		"$spark/bin/pip" install -q --no-deps -r python/requirements.txt
		"$spark/bin/pip" install -q pyspark==4.0.1 pandas==3.1.1 || fail "pip could not install pyspark: look at its errors above"
		touch "$spark/installed"
	fi
	PYSPARK_PYTHON=$PWD/$spark/bin/python exec "$spark/bin/python" -m unittest -v python/tests/test_spark.py
	;;
test) check && exec "$venv/bin/python" -m unittest discover -s python/tests ;;
*)
	case " $* " in
	*" --spark "*) # pyspark is not in the usual venv
		[ -e build/venv-spark/installed ] || "$0" spark
		venv=build/venv-spark PYSPARK_PYTHON=$PWD/build/venv-spark/bin/python
		export PYSPARK_PYTHON
		;;
	esac
	exec "$venv/bin/python" -m homenode_model "$@"
	;;
esac
