# SPDX-License-Identifier: MIT OR Apache-2.0
# The loader of the Intel machine: an option ROM of one sector, which the BIOS calls once ACPI tables and processors are set up.
#
# It reads the head of the disk to HEAD, then what the table there names (first sector, sectors, address; a row of zeros ends
# it), with PIO, and enters the kernel as PVH says (docs.xen.org, misc/pvh: 32-bit protected mode without paging, EBX = start
# info). No boot loader, no BIOS call, nothing compressed: some two seconds of the emulator. Called once more, after a reset,
# it switches the machine off (port 0x8900 of Bochs, iodev/unmapped.cc), as -no-reboot does in QEMU.
    .pushsection .rodata.unspin_option_rom, "a"
    .global unspin_option_rom, unspin_option_rom_end
    .code16
unspin_option_rom:
    .byte 0x55, 0xaa, 1
    cli
    in $0x92, %al                   # A20 on, no reset
    or $2, %al
    and $0xfe, %al
    out %al, $0x92
    lgdtl %cs:.Lrom_gdt_pointer - unspin_option_rom
    mov %cr0, %eax
    or $1, %al
    mov %eax, %cr0
    ljmpl $8, ${ROM} + (.Lrom_protected - unspin_option_rom)

    .code32
.Lrom_protected:
    mov $16, %eax
    mov %eax, %ds
    mov %eax, %es
    mov %eax, %ss
    mov ${HEAD}, %esp
    cld
    cmpl ${MAGIC}, {HEAD}           # the head is in memory already: this is a reset
    je .Lrom_off
    mov $0x3f6, %edx                # device control: no interrupts
    mov $2, %al
    out %al, %dx
    mov ${HEAD}, %edi
    xor %ebx, %ebx
    mov ${HEAD_SECTORS}, %ecx
    call .Lrom_read
    cmpl ${MAGIC}, {HEAD}
    jne .Lrom_off
    mov ${HEAD} + {TABLE}, %esi
1:  lodsl
    mov %eax, %ebx
    lodsl
    mov %eax, %ecx
    lodsl
    mov %eax, %edi
    jecxz 2f
    call .Lrom_read
    jmp 1b
2:  mov ${HEAD} + {START_INFO}, %ebx
    jmp *{HEAD} + {ENTRY}

# EBX: first sector (28 bits), ECX: how many (1 and more), EDI: where to. READ SECTORS (ATA-6, 8.34), at most 256 at a time.
.Lrom_read:
    mov $0x1f7, %edx
1:  in %dx, %al
    test $0x80, %al
    jnz 1b
    mov $0x1f2, %edx
    mov %ecx, %ebp
    cmp $256, %ebp
    jbe 2f
    mov $256, %ebp
2:  mov %ebp, %eax                  # 0 stands for 256
    out %al, %dx
    inc %edx
    mov %ebx, %eax
    out %al, %dx
    inc %edx
    shr $8, %eax
    out %al, %dx
    inc %edx
    shr $8, %eax
    out %al, %dx
    inc %edx
    shr $8, %eax
    and $0x0f, %al
    or $0xe0, %al                   # LBA, first drive
    out %al, %dx
    inc %edx
    mov $0x20, %al
    out %al, %dx
    sub %ebp, %ecx
    add %ebp, %ebx
    push %ecx
3:  mov $0x1f7, %edx
4:  in %dx, %al
    test $0x80, %al                 # busy
    jnz 4b
    test $1, %al                    # error
    jnz .Lrom_off
    test $8, %al                    # data
    jz 4b
    mov $0x1f0, %edx
    mov $256, %ecx
    rep insw
    dec %ebp
    jnz 3b
    pop %ecx
    test %ecx, %ecx
    jnz .Lrom_read
    ret

.Lrom_off:
    mov $0x8900, %edx
    mov ${ROM} + (.Lrom_word - unspin_option_rom), %esi
    mov $8, %ecx
    rep outsb
5:  hlt
    jmp 5b

.Lrom_word:
    .ascii "Shutdown"
    .balign 8
.Lrom_gdt:                          # null, flat code, flat data
    .quad 0, 0x00cf9b000000ffff, 0x00cf93000000ffff
.Lrom_gdt_pointer:
    .word 23
    .long {ROM} + (.Lrom_gdt - unspin_option_rom)
    .org unspin_option_rom + 512, 0
unspin_option_rom_end:
    .code64
    .popsection
