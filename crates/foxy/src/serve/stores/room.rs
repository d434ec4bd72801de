//! Chooses the size of each store: the configured size if the disk has enough space, otherwise a
//! size that fits. Considers all stores together, because several stores may share a disk.

use crate::failure::Failure;
use crate::settings::resolve::new_store_size;
use crate::settings::store_choice::STORE_BYTES;
use foxy_base::ByteSize;
use rustix::process::{Resource, getrlimit};
use std::collections::HashMap;
use std::path::Path;

const MIN_STORE_BYTES: u64 = *STORE_BYTES.start();

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeChoice {
    /// The store must have the configured size.
    Exactly(ByteSize),
    /// The store keeps its present size. `is_fixed` means that a change of size would delete its
    /// content.
    Kept { size: ByteSize, is_fixed: bool },
    /// The store is new and no size is configured. The free space decides.
    Anything,
    /// The store is new and no size is configured. It uses a whole block device of this size.
    Device(ByteSize),
}

impl SizeChoice {
    /// Chooses by the configured size `asked` and the size of the existing store. If both are
    /// equal, the store is used even without enough free space: otherwise foxy could not start
    /// while the disk is full. `may_grow` means that the scheme can change the size.
    pub fn of(asked: Option<ByteSize>, existing: Option<ByteSize>, may_grow: bool) -> Self {
        match (asked, existing) {
            (Some(asked), existing) if existing != Some(asked) => Self::Exactly(asked),
            (_, Some(size)) => Self::Kept { size, is_fixed: !may_grow },
            (_, None) => Self::Anything,
        }
    }

    const fn min_bytes(self) -> u64 {
        match self {
            Self::Exactly(size) | Self::Kept { size, .. } | Self::Device(size) => size.0,
            Self::Anything => 0,
        }
    }
}

/// A store that needs space, and its disk's free space.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    pub size: SizeChoice,
    /// Number that identifies the file system of the store's folder.
    pub file_system: u64,
    pub free_bytes: u64,
}

/// Store number `store` does not fit on its disk, which has only `available` bytes for the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom {
    pub store: usize,
    pub available: ByteSize,
}

/// Chooses the sizes of all stores, in order. `taken(store, enough)` returns the bytes that a store
/// already uses, and may stop counting at `enough`. This costs time, so it is called only if the
/// wanted sizes exceed the free space.
pub fn sizes(claims: &[Claim], taken: impl Fn(usize, u64) -> u64) -> Result<Vec<ByteSize>, NoRoom> {
    let mut left: HashMap<u64, u64> = HashMap::new();
    let mut wanted: HashMap<u64, u64> = HashMap::new();
    for claim in claims {
        let free = left.entry(claim.file_system).or_insert(claim.free_bytes);
        *free = claim.free_bytes.min(*free);
        let all = wanted.entry(claim.file_system).or_default();
        *all = all.saturating_add(claim.size.min_bytes());
    }
    let is_tight = |claim: &Claim| wanted[&claim.file_system] > claim.free_bytes;
    let mut order: Vec<usize> = (0..claims.len()).collect();
    order.sort_by_key(|&store| matches!(claims[store].size, SizeChoice::Anything));
    let mut sizes = vec![ByteSize(0); claims.len()];
    for store in order {
        let claim = &claims[store];
        let own = if is_tight(claim) { taken(store, claim.size.min_bytes()) } else { 0 };
        let free = left.entry(claim.file_system).or_default();
        let available = own.saturating_add(*free);
        let size = match claim.size {
            SizeChoice::Exactly(size) if size.0 > available => {
                return Err(NoRoom { store, available: ByteSize(available) });
            }
            SizeChoice::Exactly(size) | SizeChoice::Kept { size, is_fixed: true } => size.0,
            SizeChoice::Kept { size, is_fixed: false } => size.0.min(available),
            SizeChoice::Device(size) if size.0 < MIN_STORE_BYTES => {
                return Err(NoRoom { store, available: size });
            }
            SizeChoice::Device(size) => size.0,
            SizeChoice::Anything => match new_store_size(ByteSize(*free)) {
                ByteSize(0) => return Err(NoRoom { store, available: ByteSize(*free) }),
                size => size.0,
            },
        };
        *free = free.saturating_sub(size.saturating_sub(own));
        sizes[store] = ByteSize(size);
    }
    Ok(sizes)
}

/// Returns the error for a store that is larger than the process's limit on file sizes. Returns
/// `None` if the limit is high enough.
pub fn file_too_large(folder: &Path, choice: SizeChoice) -> Option<Failure> {
    let limit = getrlimit(Resource::Fsize).current.filter(|limit| *limit < choice.min_bytes())?;
    let (folder, size, limit) = (folder.display(), ByteSize(choice.min_bytes()), ByteSize(limit));
    Some(Failure::Unusable(format!(
        "store {folder}: the size is {size}, but a file may have {limit}; raise the limit on file \
         sizes (ulimit -f), or set a smaller size"
    )))
}

/// Returns the error for a store that does not fit on its disk.
pub fn no_room(folder: &Path, choice: SizeChoice, available: ByteSize) -> Failure {
    let (folder, bytes) = (folder.display(), available.0);
    let trouble = match choice {
        SizeChoice::Anything | SizeChoice::Device(_) => {
            format!("the disk has room for {bytes} bytes, too few for a store")
        }
        SizeChoice::Exactly(size) | SizeChoice::Kept { size, .. } => {
            format!("the size is {size}, but the disk has room for {bytes} bytes")
        }
    };
    let advice = match choice {
        SizeChoice::Exactly(_) if bytes >= MIN_STORE_BYTES => {
            format!("set at most {}M", bytes >> 20)
        }
        _ => format!("a store needs at least {}", ByteSize(MIN_STORE_BYTES)),
    };
    Failure::Unusable(format!(
        "store {folder}: {trouble}; {advice}, free some space, or name a folder on another disk"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn claim(wish: SizeChoice, file_system: u64, free: u64) -> Claim {
        Claim { size: wish, file_system, free_bytes: free * MIB }
    }

    fn exactly(mebibytes: u64) -> SizeChoice {
        SizeChoice::Exactly(ByteSize(mebibytes * MIB))
    }

    fn kept(mebibytes: u64, is_fixed: bool) -> SizeChoice {
        SizeChoice::Kept { size: ByteSize(mebibytes * MIB), is_fixed }
    }

    fn check(claims: &[Claim], taken: u64, expected: Result<&[u64], (usize, u64)>) {
        let expected = expected
            .map(|sizes| sizes.iter().map(|size| ByteSize(size * MIB)).collect())
            .map_err(|(store, available)| NoRoom { store, available: ByteSize(available * MIB) });
        assert_eq!(sizes(claims, |_, _| taken * MIB), expected, "{claims:?}");
    }

    #[test]
    fn an_existing_store_of_the_asked_size_is_kept() {
        let [small, large] = [16, 32].map(|mebibytes| ByteSize(mebibytes * MIB));
        assert_eq!(SizeChoice::of(None, None, true), SizeChoice::Anything);
        assert_eq!(SizeChoice::of(Some(large), None, true), exactly(32));
        assert_eq!(SizeChoice::of(Some(large), Some(small), true), exactly(32));
        assert_eq!(SizeChoice::of(Some(large), Some(large), true), kept(32, false));
        assert_eq!(SizeChoice::of(None, Some(large), false), kept(32, true));
    }

    #[test]
    fn an_exact_size_is_given_or_refused() {
        check(&[claim(exactly(100), 1, 100)], 0, Ok(&[100]));
        check(&[claim(exactly(101), 1, 100)], 0, Err((0, 100)));
    }

    #[test]
    fn the_bytes_of_an_existing_store_count_as_available() {
        check(&[claim(exactly(101), 1, 100)], 1, Ok(&[101]));
        check(&[claim(exactly(150), 1, 40)], 100, Err((0, 140)));
    }

    #[test]
    fn stores_on_one_disk_share_its_room() {
        check(&[claim(exactly(60), 1, 100), claim(exactly(60), 1, 100)], 0, Err((1, 40)));
        check(&[claim(exactly(60), 1, 100), claim(exactly(60), 2, 100)], 0, Ok(&[60, 60]));
        check(&[claim(SizeChoice::Anything, 1, 100), claim(exactly(60), 1, 100)], 0, Ok(&[4, 60]));
    }

    #[test]
    fn a_store_without_a_wish_gets_what_fits() {
        check(&[claim(SizeChoice::Anything, 1, 1000)], 0, Ok(&[100]));
        check(&[claim(SizeChoice::Anything, 1, 9)], 0, Err((0, 9)));
        check(&[claim(kept(100, false), 1, 10)], 50, Ok(&[60]));
        check(&[claim(kept(100, true), 1, 10)], 50, Ok(&[100]));
        check(&[claim(kept(100, false), 1, 1000)], 0, Ok(&[100]));
    }

    #[test]
    fn a_new_store_on_a_block_device_takes_all_of_it() {
        let all =
            |mebibytes: u64| claim(SizeChoice::Device(ByteSize(mebibytes * MIB)), 1, mebibytes);
        check(&[all(1000)], 0, Ok(&[1000]));
        check(&[all(15)], 0, Err((0, 15)));
    }

    #[test]
    fn a_disk_with_room_is_not_counted() {
        let counted = |_: usize, _: u64| unreachable!("nothing is counted");
        assert_eq!(sizes(&[claim(exactly(9), 1, 10)], counted), Ok(vec![ByteSize(9 * MIB)]));
    }

    #[test]
    fn a_refusal_names_the_available_bytes() {
        let wish = SizeChoice::Exactly(ByteSize(1 << 40));
        let text = |available| no_room(Path::new("/s"), wish, ByteSize(available)).to_string();
        let said = "store /s: the size is 1 TiB, but the disk has room for ";
        assert!(
            text(100_000_000).starts_with(&format!("{said}100000000 bytes; set at most 95M, "))
        );
        assert!(text(5).starts_with(&format!("{said}5 bytes; a store needs at least 16 MiB, ")));
    }
}
