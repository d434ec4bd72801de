//! Operations by kind, for whoever counts or records them.

use crate::io::IoOp;

/// What an operation is, without its particulars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OpKind {
    /// [`IoOp::Open`].
    Open,
    /// [`IoOp::OpenBlockDevice`].
    OpenBlockDevice,
    /// [`IoOp::Create`].
    Create,
    /// [`IoOp::Close`].
    Close,
    /// [`IoOp::Read`].
    Read,
    /// [`IoOp::Write`].
    Write,
    /// [`IoOp::Sync`].
    Sync,
    /// [`IoOp::Remove`].
    Remove,
    /// [`IoOp::MakeDir`].
    MakeDir,
    /// [`IoOp::List`].
    List,
    /// [`IoOp::Trim`].
    Trim,
}

impl OpKind {
    /// All kinds.
    pub const ALL: [Self; 11] = [
        Self::Open,
        Self::OpenBlockDevice,
        Self::Create,
        Self::Close,
        Self::Read,
        Self::Write,
        Self::Sync,
        Self::Remove,
        Self::MakeDir,
        Self::List,
        Self::Trim,
    ];

    /// The kind of `op`.
    #[must_use]
    pub const fn of(op: &IoOp) -> Self {
        match op {
            IoOp::Open { .. } => Self::Open,
            IoOp::OpenBlockDevice { .. } => Self::OpenBlockDevice,
            IoOp::Create { .. } => Self::Create,
            IoOp::Close { .. } => Self::Close,
            IoOp::Read { .. } => Self::Read,
            IoOp::Write { .. } => Self::Write,
            IoOp::Sync { .. } => Self::Sync,
            IoOp::Remove { .. } => Self::Remove,
            IoOp::MakeDir { .. } => Self::MakeDir,
            IoOp::List { .. } => Self::List,
            IoOp::Trim { .. } => Self::Trim,
        }
    }

    /// Its name in records and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::OpenBlockDevice => "open-block-device",
            Self::Create => "create",
            Self::Close => "close",
            Self::Read => "read",
            Self::Write => "write",
            Self::Sync => "sync",
            Self::Remove => "remove",
            Self::MakeDir => "make-directory",
            Self::List => "list",
            Self::Trim => "trim",
        }
    }
}
