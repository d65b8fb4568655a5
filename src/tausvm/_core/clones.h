/* Copies of a function for several instruction sets; the loader takes the best that the machine
 * has. Named by instruction set: a processor's name would be matched by its maker's alone. */
#ifndef TAUSVM_CLONES_H
#define TAUSVM_CLONES_H

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__)
#if __GNUC__ >= 12
#define TAUSVM_CLONES \
    __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
/* Vectors longer than those of the machine go through memory, twenty times as slowly: functions that
 * have vectors of 64 bytes in their source are for machines that have them too. */
#define TAUSVM_WIDE __attribute__((target("arch=x86-64-v4")))
#define TAUSVM_HAS_WIDE __builtin_cpu_supports("x86-64-v4")
#else
#define TAUSVM_CLONES __attribute__((target_clones("avx2", "default")))
#endif
#else
#define TAUSVM_CLONES
#endif

#endif
