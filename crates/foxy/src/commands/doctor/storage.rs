//! Examines io_uring, and file system and space of each store.

use super::{Diagnosis, Grade};
use crate::settings::store_choice::StoreChoice;
use foxy_base::{ByteSize, clock};
use foxy_cli::temporary::Temporary;
use foxy_device::{DeviceKind, DeviceSettings, Root, open_device};
use rustix::fs::{statfs, statvfs};
use std::path::Path;

/// Examines whether the kernel has the io_uring operations with which foxy uses disks.
pub fn rings() -> Diagnosis {
    let name = format!("foxy-doctor-{}-{}", std::process::id(), clock::monotonic().0);
    let folder = Temporary::new(std::env::temp_dir().join(name));
    let root = Root::open(folder.path()).ok();
    let opened = root.and_then(|root| open_device(&root, DeviceSettings::default()).ok());
    match opened.map(|(_, kind)| kind) {
        Some(DeviceKind::ThreadsInstead(reason)) => {
            let says =
                format!("foxy uses threads for disks, which costs more processor time: {reason}");
            Diagnosis::bad("rings", Grade::Warning, says, "sysctl -w kernel.io_uring_disabled=0")
        }
        Some(_) => Diagnosis::good("rings", "io_uring works"),
        None => {
            let says = "io_uring cannot be tried: no temporary folder can be made";
            Diagnosis::bad("rings", Grade::Warning, says, "df -h /tmp")
        }
    }
}

/// Numbers by which statfs(2) names file systems, and why a store should not be on them.
const DOUBTFUL: [(u64, &str, &str); 8] = [
    (0x6969, "NFS", "a slow server stalls the store"),
    (0xFF53_4D42, "CIFS", "a slow server stalls the store"),
    (0xFE53_4D42, "SMB", "a slow server stalls the store"),
    (0x0102_1997, "9p", "it is slow, and may lose data that it reported as written"),
    (0x6573_5546, "FUSE", "it may be slow, and may lose data that it reported as written"),
    (0x794C_7630, "overlay", "the store disappears with the container; mount a volume"),
    (0x0102_1994, "tmpfs", "the store takes memory, and disappears when the machine stops"),
    (0x9123_683E, "btrfs", "it copies on each write, which spreads the store's file over the disk"),
];

/// Examines the folder of a store. If it does not exist, examines the folder above it.
pub fn folder(store: &StoreChoice) -> Vec<Diagnosis> {
    let there = |path: &&Path| !path.as_os_str().is_empty() && path.exists();
    let folder = store.folder.ancestors().find(there).unwrap_or(Path::new("."));
    let shown = folder.display();
    let kind = statfs(folder).map(|found| found.f_type as u64 & 0xFFFF_FFFF);
    let doubt = kind.ok().and_then(|kind| DOUBTFUL.iter().find(|(number, ..)| *number == kind));
    let file_system = match doubt {
        Some((_, name, why)) => {
            let says = format!("{shown} is on {name}: {why}");
            Diagnosis::bad("file system", Grade::Warning, says, format!("findmnt --target {shown}"))
        }
        None => Diagnosis::good("file system", format!("{shown} is on a usual file system")),
    };
    let space = statvfs(folder).map(|found| {
        let bytes = |blocks: u64| ByteSize(blocks.saturating_mul(found.f_frsize));
        space(folder, bytes(found.f_bavail), bytes(found.f_blocks))
    });
    [Some(file_system), space.ok()].into_iter().flatten().collect()
}

/// Examines the free space of a store's file system. A file system with less than a twentieth of
/// free space is slow, and may soon be full.
fn space(folder: &Path, free: ByteSize, size: ByteSize) -> Diagnosis {
    let folder = folder.display();
    let says = format!("{folder} has {free} of {size} free");
    if free.0 >= size.0 / 20 {
        return Diagnosis::good("space", says);
    }
    Diagnosis::bad(
        "space",
        Grade::Warning,
        says,
        format!("du --one-file-system --human-readable --max-depth 2 {folder} | sort -h"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nearly_full_file_system_is_found() {
        let grade = |free| space(Path::new("/x"), ByteSize(free), ByteSize(1000)).grade;
        assert_eq!((grade(49), grade(50)), (Grade::Warning, Grade::Good));
    }
}
