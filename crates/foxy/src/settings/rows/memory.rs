//! Settings of the chapter "The cache in memory".

use super::super::kind::{Area, Preset, Setting, size};
use foxy_base::ByteSize;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

settings! {
    /// The cache in memory.
    struct Memory, written as WrittenMemory in memory, chapter Memory;

    size: given ByteSize {
        key: "memory",
        flag: "memory",
        kind: size, MIB, TIB;
        default: Preset::Computed(
            "an eighth of the memory of the machine or control group, at most 1 GiB",
        ),
        doc: "Bytes of responses, and of parts of large ones, kept in memory, in front of the \
              disk.",
    }

    object_limit: given ByteSize {
        key: "memory-object-limit",
        kind: size, KIB, GIB;
        default: Preset::Fixed(&["1M"]),
        doc: "Larger bodies are not kept in memory, but for those parts of bodies above 1 MiB \
              that are asked for again and again.",
    }
}
