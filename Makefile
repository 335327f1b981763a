# SPDX-License-Identifier: MIT OR Apache-2.0
# Thin: every target calls a script. "make" alone lists them.

# One sitting of what takes a night: STALE=1 for what never ran or did not pass, LIMIT=8h for its end.
SITTING = $(if $(STALE),--stale) $(if $(LIMIT),--limit $(LIMIT))

.PHONY: help demo test check test-long mutants lint docs benchmarks setup intel lib lib-install lib-uninstall linux-guest linux-loads linux-module \
	packages deny ple-module rivals wheel update-lock clean-cache uninstall

help:
	@echo "make demo         set up what is missing, then show stalled VMs in the testbed (MACHINE=intel: in the Intel machine)"
	@echo "make test         set up what is missing, then run every test (SUITE=name: only that one)"
	@echo "make check        one check by name, wherever it runs: make check NAME=quotas_are_named"
	@echo "make test-long    the long checks (NAME=part, STALE=1, LIMIT=8h); what became of each: tests/long/results.tsv"
	@echo "make mutants      plant each seeded bug and check that the tests find it (NAME=, STALE=1, LIMIT=8h)"
	@echo "make lint         rustfmt, clippy, clang-format, shellcheck, libraries, SPDX lines, citations"
	@echo "make deny         check licences, registries and versions of all libraries (cargo-deny), 2 min, then seconds"
	@echo "make docs         write the pages that follow from the binary and the data; build the book (target/book)"
	@echo "make benchmarks   repeat one measurement of benchmarks/: make benchmarks WHAT=demo"
	@echo "make setup        set-up alone"
	@echo "make intel        fetch Bochs, the emulator of the testbed's Intel machine (40 MB); seconds"
	@echo "make linux-guest  build the Linux guest with the papers' spinlocks (guest-linux/), about 9 min"
	@echo "make linux-loads  fetch and build loads for Linux guests (guest-linux/packaged/): PostgreSQL, stress-ng, a Go program, ...; 2 min"
	@echo "make linux-module build the module for unmodified Linux guests (guest-linux/module/), seconds"
	@echo "make ple-module   build the kernel module that sets pause-loop windows (kmod/) for the testbed's kernel, half a minute"
	@echo "make lib          build libunspin, the locks as a C library, seconds; make lib-install PREFIX=/usr/local (DESTDIR=, LIBDIR=), make lib-uninstall"
	@echo "make wheel        build the Python module unspin_lab: dist/unspin_lab-*.whl (docs/python.md), about 2 min"
	@echo "make packages     build dist/unspin_*.deb and dist/unspin-*.rpm (docs/install.md), about 4 min, then seconds"
	@echo "make rivals       build the sched_ext schedulers that people run (scx_bpfland, scx_lavd, scx_rusty; GPL-2.0) from crates.io, about 20 min"
	@echo "make update-lock  lock the newest kernel and emulator (setup/packages.lock)"
	@echo "make clean-cache  remove downloads, kernel and emulator"
	@echo "make uninstall    remove all that set-up made; lists the system packages it installed"

demo:
	@setup/run demo
	@$(if $(filter intel,$(MACHINE)),testbed/bochs/fetch)
	@./unspin demo $(if $(MACHINE),--machine $(MACHINE))

test:
	@setup/run test
	@setup/test $(SUITE)

test-long:
	@setup/run test
	@setup/kernels
	@setup/test-long $(NAME) $(SITTING)

mutants:
	@setup/run test
	@cargo --quiet xtask mutants $(NAME) $(SITTING)

lint:
	@setup/lint

docs:
	@setup/docs

benchmarks:
	@setup/run demo
	@cargo --quiet xtask benchmark "$(WHAT)"

check:
	@setup/run test
	@cargo --quiet xtask check "$(NAME)"

setup:
	@setup/run test

intel:
	@setup/run demo
	@testbed/bochs/fetch

linux-guest:
	@setup/run demo
	@guest-linux/build

linux-loads:
	@setup/run demo
	@guest-linux/packaged/build

linux-module:
	@setup/run demo
	@guest-linux/module/build

ple-module:
	@setup/run demo
	@kmod/build

rivals:
	@setup/run demo
	@setup/rivals

deny:
	@setup/deny

packages:
	@setup/run demo
	@setup/packages

wheel:
	@setup/system-packages wheel
	@setup/wheel

update-lock:
	@setup/update-lock

clean-cache:
	@setup/clean cache

uninstall:
	@setup/clean uninstall

lib:
	@lib/build

lib-install:
	@PREFIX="$(PREFIX)" LIBDIR="$(LIBDIR)" DESTDIR="$(DESTDIR)" lib/install

lib-uninstall:
	@PREFIX="$(PREFIX)" LIBDIR="$(LIBDIR)" DESTDIR="$(DESTDIR)" lib/install --remove
