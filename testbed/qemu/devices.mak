# SPDX-License-Identifier: MIT OR Apache-2.0
# What the emulated host has: three machine types, and beside what they select only these. Becomes
# configs/devices/x86_64-softmmu/unspin.mak of QEMU's source.
CONFIG_PCI_DEVICES=n
CONFIG_Q35=y
CONFIG_I440FX=y
CONFIG_MICROVM=y
CONFIG_HPET=y
CONFIG_IVSHMEM_DEVICE=y
CONFIG_ISA_DEBUG=y
CONFIG_VIRTIO_PCI=y
CONFIG_VIRTIO_BLK=y
CONFIG_VIRTIO_SERIAL=y
