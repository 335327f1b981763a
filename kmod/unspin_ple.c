// SPDX-License-Identifier: GPL-2.0-only
/*
 * unspin_ple.c - the one thing that BPF cannot do: set the pause-loop window of the vCPU that this thread serves. One
 * kernel function for BPF programs (bpf/window/main.bpf.c), and nothing else.
 *
 * Where the fields of KVM's private structs lie comes in as module parameters: user space reads them from the BTF of the KVM
 * that is loaded (crates/agent/src/window/module.rs). This kernel's own headers must agree, or the module is
 * not loaded. The verifier sees to it that `vcpu` is a struct kvm_vcpu; while a program that calls the function is loaded,
 * that program holds this module, and rmmod fails.
 *
 * Linux 7.2. AMD: run in the testbed. Intel: compiled and its layout checked against BTF, never run.
 */
#include <linux/bpf.h>
#include <linux/btf.h>
#include <linux/btf_ids.h>
#include <linux/kvm_host.h>
#include <linux/module.h>
#include <asm/svm.h>

/* A byte offset within, or the size of, a struct that BTF describes. */
#define LAYOUT(name, says)                                                                                             \
	static uint name;                                                                                              \
	module_param(name, uint, 0444);                                                                                \
	MODULE_PARM_DESC(name, says)

LAYOUT(vcpu_bytes, "size of struct kvm_vcpu");
LAYOUT(vcpu_pid, "kvm_vcpu.pid");
LAYOUT(svm_bytes, "size of struct vcpu_svm; 0: not AMD");
LAYOUT(svm_vmcb, "vcpu_svm.vmcb");
LAYOUT(svm_vmcb01, "vcpu_svm.vmcb01.ptr");
LAYOUT(vmcb_filter_count, "vmcb.control.pause_filter_count");
LAYOUT(vmcb_clean, "vmcb.control.clean");
LAYOUT(vmx_bytes, "size of struct vcpu_vmx; 0: not Intel");
LAYOUT(vmx_window, "vcpu_vmx.ple_window");
LAYOUT(vmx_window_dirty, "vcpu_vmx.ple_window_dirty");

/* arch/x86/kvm/svm/svm.h: VMCB_INTERCEPTS, the clean bit whose group has the pause filter count (APM vol. 2, 15.15.3). */
#define CLEAN_INTERCEPTS 1u

static int set_svm(char *svm, u32 window)
{
	char *vmcb = *(char **)(svm + svm_vmcb);
	u16 *count = (u16 *)(vmcb + vmcb_filter_count);

	/* A guest of the guest runs: KVM merges two windows into vmcb02, and that one is not ours. */
	if (vmcb != *(char **)(svm + svm_vmcb01))
		return -EBUSY;
	if (!window || window > U16_MAX)
		return -EINVAL;
	/* KVM or the VMM has switched pause-loop exits off. */
	if (!*count)
		return -ENODEV;
	if (*count == window)
		return 0;
	*count = window;
	*(u32 *)(vmcb + vmcb_clean) &= ~CLEAN_INTERCEPTS;
	return 1;
}

/* vmx_vcpu_run() writes a dirty window into the VMCS before it enters the guest. */
static int set_vmx(char *vmx, u32 window)
{
	u32 *in_force = (u32 *)(vmx + vmx_window);

	if (!window)
		return -EINVAL;
	if (!*in_force)
		return -ENODEV;
	if (*in_force == window)
		return 0;
	*in_force = window;
	*(bool *)(vmx + vmx_window_dirty) = true;
	return 1;
}

__bpf_kfunc_start_defs();

/*
 * The vCPU's pause-loop window from its next entry on: PAUSEs (AMD), TSC cycles (Intel). 1: changed; 0: as it was; -EPERM:
 * this thread does not serve that vCPU, or not just now; -EBUSY: a guest of its guest runs; -ENODEV: it has no pause-loop
 * exits; -EINVAL: no window.
 */
__bpf_kfunc int unspin_ple_set(struct kvm_vcpu *vcpu, u32 window)
{
	/* Between two runs of the guest the vCPU's own thread alone touches these words. */
	if (vcpu->pid != task_pid(current) || vcpu->cpu != raw_smp_processor_id())
		return -EPERM;
	return svm_bytes ? set_svm((char *)vcpu, window) : set_vmx((char *)vcpu, window);
}

__bpf_kfunc_end_defs();

BTF_KFUNCS_START(unspin_ple_functions)
BTF_ID_FLAGS(func, unspin_ple_set)
BTF_KFUNCS_END(unspin_ple_functions)

static const struct btf_kfunc_id_set functions = {
	.owner = THIS_MODULE,
	.set = &unspin_ple_functions,
};

/* Whether a field of so many bytes lies in the part of a struct that comes after its struct kvm_vcpu. */
static bool is_private(uint offset, uint bytes, uint struct_bytes)
{
	return offset >= vcpu_bytes && offset % bytes == 0 && offset <= struct_bytes - bytes;
}

static bool knows_svm(void)
{
	return svm_bytes > vcpu_bytes && is_private(svm_vmcb, sizeof(void *), svm_bytes) &&
	       is_private(svm_vmcb01, sizeof(void *), svm_bytes) && svm_vmcb != svm_vmcb01 &&
	       vmcb_filter_count == offsetof(struct vmcb, control.pause_filter_count) &&
	       vmcb_clean == offsetof(struct vmcb, control.clean);
}

static bool knows_vmx(void)
{
	return vmx_bytes > vcpu_bytes && is_private(vmx_window, sizeof(u32), vmx_bytes) &&
	       is_private(vmx_window_dirty, sizeof(bool), vmx_bytes) && vmx_window != vmx_window_dirty;
}

/* One vendor's layout, whole, that of the CPU we run on, and no other than in this kernel's headers. */
static bool layout_is_known(void)
{
	if (vcpu_bytes != sizeof(struct kvm_vcpu) || vcpu_pid != offsetof(struct kvm_vcpu, pid))
		return false;
	if (!svm_bytes == !vmx_bytes)
		return false;
	return svm_bytes ? boot_cpu_has(X86_FEATURE_SVM) && knows_svm() : boot_cpu_has(X86_FEATURE_VMX) && knows_vmx();
}

static int __init unspin_ple_init(void)
{
	if (!layout_is_known()) {
		pr_err("unspin_ple: this is not the layout of KVM's structs that the module was built for\n");
		return -EINVAL;
	}
	return register_btf_kfunc_id_set(BPF_PROG_TYPE_TRACING, &functions);
}

/* Nothing to undo: the functions go with the module, which no program holds any more. */
static void __exit unspin_ple_exit(void)
{
}

module_init(unspin_ple_init);
module_exit(unspin_ple_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("unspin: the pause-loop window of a vCPU, for BPF programs");
