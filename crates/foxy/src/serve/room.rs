//! How large each store becomes: what was asked for, where the disk has it; else, of its own
//! accord, what fits. Decided for all stores before any is opened, as several may share a disk.
//! Nothing is written here.

use crate::failure::Failure;
use crate::settings::resolve::new_store_size;
use foxy_base::ByteSize;
use rustix::process::{Resource, getrlimit};
use std::collections::HashMap;
use std::path::Path;

/// Bytes of the smallest store.
const LEAST: u64 = *crate::settings::store_choice::SIZES.start();

/// What a store is to become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Of this size, as the operator wrote.
    Exactly(ByteSize),
    /// As large as the one that is there. `fixed` when another size would begin it anew.
    Kept {
        /// Its size.
        size: ByteSize,
        /// Whether it cannot change.
        fixed: bool,
    },
    /// A new one, of a size that suits the disk.
    Anything,
    /// A new one on a block device, of all of its bytes.
    Device(ByteSize),
}

impl Wish {
    /// What follows from the size that was asked for, if any was, and that of the store that is
    /// there, if one is. A store that has the size it is asked for is kept although its disk has
    /// filled up since: a proxy that does not start serves nobody. `grows` says whether its size
    /// may change.
    pub fn of(asked: Option<ByteSize>, existing: Option<ByteSize>, grows: bool) -> Self {
        match (asked, existing) {
            (Some(asked), existing) if existing != Some(asked) => Self::Exactly(asked),
            (_, Some(size)) => Self::Kept { size, fixed: !grows },
            (_, None) => Self::Anything,
        }
    }

    /// Bytes it wants at least.
    pub const fn bytes(self) -> ByteSize {
        match self {
            Self::Exactly(size) | Self::Kept { size, .. } | Self::Device(size) => size,
            Self::Anything => ByteSize(0),
        }
    }
}

/// A store and the disk it lies on.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// What it is to become.
    pub wish: Wish,
    /// Names the file system.
    pub file_system: u64,
    /// Bytes free there.
    pub free: u64,
}

/// A store that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom {
    /// Which of the claims.
    pub store: usize,
    /// Bytes it could have.
    pub available: ByteSize,
}

/// Sizes for all stores, in their order. `taken(store, enough)` counts what a store has on disk
/// already, which it may use again; only asked where not all wishes fit into what is free.
///
/// # Errors
/// The first store that cannot have what was asked for.
pub fn sizes(claims: &[Claim], taken: impl Fn(usize, u64) -> u64) -> Result<Vec<ByteSize>, NoRoom> {
    let mut left: HashMap<u64, u64> = HashMap::new();
    let mut wanted: HashMap<u64, u64> = HashMap::new();
    for claim in claims {
        let free = left.entry(claim.file_system).or_insert(claim.free);
        *free = claim.free.min(*free);
        let all = wanted.entry(claim.file_system).or_default();
        *all = all.saturating_add(claim.wish.bytes().0);
    }
    let tight = |claim: &Claim| wanted[&claim.file_system] > claim.free;
    let mut order: Vec<usize> = (0..claims.len()).collect();
    order.sort_by_key(|&store| matches!(claims[store].wish, Wish::Anything));
    let mut sizes = vec![ByteSize(0); claims.len()];
    for store in order {
        let claim = &claims[store];
        let own = if tight(claim) { taken(store, claim.wish.bytes().0) } else { 0 };
        let free = left.entry(claim.file_system).or_default();
        let available = own.saturating_add(*free);
        let size = match claim.wish {
            Wish::Exactly(size) if size.0 > available => {
                return Err(NoRoom { store, available: ByteSize(available) });
            }
            Wish::Exactly(size) | Wish::Kept { size, fixed: true } => size.0,
            Wish::Kept { size, fixed: false } => size.0.min(available),
            Wish::Device(size) if size.0 < LEAST => return Err(NoRoom { store, available: size }),
            Wish::Device(size) => size.0,
            Wish::Anything => match new_store_size(ByteSize(*free)) {
                ByteSize(0) => return Err(NoRoom { store, available: ByteSize(*free) }),
                size => size.0,
            },
        };
        *free = free.saturating_sub(size.saturating_sub(own));
        sizes[store] = ByteSize(size);
    }
    Ok(sizes)
}

/// What is said of a store whose file may not become as large as was asked for.
pub fn too_large_a_file(folder: &Path, wish: Wish) -> Option<Failure> {
    let limit = getrlimit(Resource::Fsize).current.filter(|limit| *limit < wish.bytes().0)?;
    let (folder, size, limit) = (folder.display(), wish.bytes(), ByteSize(limit));
    Some(Failure::Unusable(format!(
        "store {folder}: a size of {size} was asked for and a file may have {limit}; raise the limit on the size of a file \
         (ulimit -f), or ask for less"
    )))
}

/// What is said of a store that does not fit.
pub fn refusal(folder: &Path, wish: Wish, available: ByteSize) -> Failure {
    let (folder, bytes) = (folder.display(), available.0);
    let trouble = match wish {
        Wish::Anything | Wish::Device(_) => {
            format!("the disk has room for {bytes} bytes, too few for a store")
        }
        Wish::Exactly(size) | Wish::Kept { size, .. } => {
            format!("a size of {size} was asked for and the disk has room for {bytes} bytes")
        }
    };
    let advice = match wish {
        Wish::Exactly(_) if bytes >= LEAST => format!("ask for at most {}M", bytes >> 20),
        _ => format!("a store takes at least {}", ByteSize(LEAST)),
    };
    Failure::Unusable(format!(
        "store {folder}: {trouble}; {advice}, free some space, or name a folder on another disk"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn claim(wish: Wish, file_system: u64, free: u64) -> Claim {
        Claim { wish, file_system, free: free * MIB }
    }

    fn exactly(mebibytes: u64) -> Wish {
        Wish::Exactly(ByteSize(mebibytes * MIB))
    }

    fn kept(mebibytes: u64, fixed: bool) -> Wish {
        Wish::Kept { size: ByteSize(mebibytes * MIB), fixed }
    }

    fn check(claims: &[Claim], taken: u64, expected: Result<&[u64], (usize, u64)>) {
        let expected = expected
            .map(|sizes| sizes.iter().map(|size| ByteSize(size * MIB)).collect())
            .map_err(|(store, available)| NoRoom { store, available: ByteSize(available * MIB) });
        assert_eq!(sizes(claims, |_, _| taken * MIB), expected, "{claims:?}");
    }

    #[test]
    fn a_store_of_the_size_that_is_asked_for_is_kept() {
        let [small, large] = [16, 32].map(|mebibytes| ByteSize(mebibytes * MIB));
        assert_eq!(Wish::of(None, None, true), Wish::Anything);
        assert_eq!(Wish::of(Some(large), None, true), exactly(32));
        assert_eq!(Wish::of(Some(large), Some(small), true), exactly(32));
        assert_eq!(Wish::of(Some(large), Some(large), true), kept(32, false));
        assert_eq!(Wish::of(None, Some(large), false), kept(32, true));
    }

    #[test]
    fn what_was_asked_for_is_given_or_refused() {
        check(&[claim(exactly(100), 1, 100)], 0, Ok(&[100]));
        check(&[claim(exactly(101), 1, 100)], 0, Err((0, 100)));
    }

    #[test]
    fn what_a_store_has_already_counts_as_available() {
        check(&[claim(exactly(101), 1, 100)], 1, Ok(&[101]));
        check(&[claim(exactly(150), 1, 40)], 100, Err((0, 140)));
    }

    #[test]
    fn stores_on_one_disk_share_its_room() {
        check(&[claim(exactly(60), 1, 100), claim(exactly(60), 1, 100)], 0, Err((1, 40)));
        check(&[claim(exactly(60), 1, 100), claim(exactly(60), 2, 100)], 0, Ok(&[60, 60]));
        check(&[claim(Wish::Anything, 1, 100), claim(exactly(60), 1, 100)], 0, Ok(&[4, 60]));
    }

    #[test]
    fn what_was_not_asked_for_becomes_what_fits() {
        check(&[claim(Wish::Anything, 1, 1000)], 0, Ok(&[100]));
        check(&[claim(Wish::Anything, 1, 9)], 0, Err((0, 9)));
        check(&[claim(kept(100, false), 1, 10)], 50, Ok(&[60]));
        check(&[claim(kept(100, true), 1, 10)], 50, Ok(&[100]));
        check(&[claim(kept(100, false), 1, 1000)], 0, Ok(&[100]));
    }

    #[test]
    fn a_new_store_on_a_block_device_takes_all_of_it() {
        let all = |mebibytes: u64| claim(Wish::Device(ByteSize(mebibytes * MIB)), 1, mebibytes);
        check(&[all(1000)], 0, Ok(&[1000]));
        check(&[all(15)], 0, Err((0, 15)));
    }

    #[test]
    fn a_disk_with_room_is_not_searched() {
        let counted = |_: usize, _: u64| unreachable!("nothing is counted");
        assert_eq!(sizes(&[claim(exactly(9), 1, 10)], counted), Ok(vec![ByteSize(9 * MIB)]));
    }

    #[test]
    fn a_refusal_says_how_many_bytes_there_are_and_what_to_ask_for() {
        let wish = Wish::Exactly(ByteSize(1 << 40));
        let text = |available| refusal(Path::new("/s"), wish, ByteSize(available)).to_string();
        let said = "store /s: a size of 1 TiB was asked for and the disk has room for ";
        assert!(
            text(100_000_000).starts_with(&format!("{said}100000000 bytes; ask for at most 95M, "))
        );
        assert!(text(5).starts_with(&format!("{said}5 bytes; a store takes at least 16 MiB, ")));
    }
}
