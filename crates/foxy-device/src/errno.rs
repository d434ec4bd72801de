//! System errors as [`IoError`].

use crate::io::IoError;
use rustix::io::Errno;

impl From<Errno> for IoError {
    fn from(error: Errno) -> Self {
        match error {
            Errno::NOENT => Self::NotFound,
            Errno::NOSPC | Errno::DQUOT | Errno::FBIG => Self::NoSpace,
            Errno::IO => Self::Device,
            Errno::ACCESS | Errno::PERM => Self::Denied,
            Errno::ROFS => Self::ReadOnly,
            Errno::LOOP | Errno::ISDIR | Errno::NOTDIR | Errno::NXIO => Self::WrongKind,
            Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN => Self::Exhausted,
            Errno::NOMEDIUM => Self::NoMedium,
            Errno::BADF => Self::NotOpen,
            other => Self::Other(other.raw_os_error()),
        }
    }
}
