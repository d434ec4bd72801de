//! A store in the settings: a folder with options for this store, written `PATH,option=value,...`.

use super::values::exact;
use foxy_base::ByteSize;
use foxy_schemes::SchemeName;
use std::ffi::OsStr;
use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;

pub const NO_FOLDER: &str = "the path of a folder is empty; write a path such as /var/cache/foxy";
/// Words by which users mean that foxy should have no store.
const NO_STORE: [&str; 6] = ["off", "no", "none", "false", "null", "memory"];
/// Smallest and largest size of a store, in bytes.
pub const STORE_BYTES: RangeInclusive<u64> = 16 << 20..=64 << 40;

/// A store in the settings. Where an option is `None`, the setting for all stores applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreChoice {
    pub folder: PathBuf,
    pub scheme: Option<SchemeName>,
    pub size: Option<ByteSize>,
    pub min_object: Option<ByteSize>,
    pub max_object: Option<ByteSize>,
    /// Number of operations in progress at which `diskd` opens no more files.
    pub q1: Option<usize>,
    /// Number of operations in progress at which `diskd` waits for its helper process.
    pub q2: Option<usize>,
}

impl StoreChoice {
    /// Creates a store in `folder`, without options.
    pub const fn plain(folder: PathBuf) -> Self {
        Self {
            folder,
            scheme: None,
            size: None,
            min_object: None,
            max_object: None,
            q1: None,
            q2: None,
        }
    }

    /// Parses a folder and its options. A comma starts the options only if a name and `=` follow.
    /// Other commas belong to the folder's name.
    pub fn read(text: &OsStr) -> Result<Self, String> {
        let options_at = text
            .to_str()
            .and_then(|text| text.match_indices(',').find(|(at, _)| option_at(&text[at + 1..])));
        let (folder, options) = match (text.to_str(), options_at) {
            (Some(text), Some((at, _))) => (OsStr::new(&text[..at]), &text[at + 1..]),
            _ => (text, ""),
        };
        if folder.is_empty() {
            return Err(NO_FOLDER.into());
        }
        let word = folder.to_str().filter(|word| NO_STORE.contains(word));
        if let Some(word) = word {
            return Err(format!(
                "{word:?} would be a folder; to cache in memory alone, leave out `store` and write \
                 scheme = \"null\""
            ));
        }
        let mut store = Self::plain(folder.into());
        for option in options.split(',').filter(|option| !option.is_empty()) {
            store.option(option)?;
        }
        store.validated()
    }

    fn option(&mut self, option: &str) -> Result<(), String> {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let bytes = || value.parse::<ByteSize>().map_err(|error| format!("{name}: {error}"));
        match name {
            "scheme" => self.scheme = Some(value.parse().map_err(|error| format!("{error}"))?),
            "size" => self.size = Some(bytes()?),
            "min-object" => self.min_object = Some(bytes()?),
            "max-object" => self.max_object = Some(bytes()?),
            _ => {
                return Err(format!(
                    "{name:?} is not an option of a store; the options are scheme, size, \
                     min-object \
                     and \
                     max-object"
                ));
            }
        }
        Ok(())
    }

    /// Returns the store, or an error if the value of an option is outside its bounds.
    pub fn validated(self) -> Result<Self, String> {
        if let Some(size) = self.size
            && !STORE_BYTES.contains(&size.0)
        {
            let (least, most) = (ByteSize(*STORE_BYTES.start()), ByteSize(*STORE_BYTES.end()));
            return Err(format!("a store cannot have {size}; give a size from {least} to {most}"));
        }
        let sizes = self.sizes();
        if sizes.is_empty() {
            let (least, most) = (ByteSize(*sizes.start()), ByteSize(*sizes.end()));
            return Err(format!(
                "min-object {least} is larger than max-object {most}; make min-object smaller"
            ));
        }
        Ok(self)
    }

    /// Returns the sizes in bytes of the objects that the store accepts.
    pub fn sizes(&self) -> RangeInclusive<u64> {
        self.min_object.map_or(0, |size| size.0)..=self.max_object.map_or(u64::MAX, |size| size.0)
    }
}

/// Returns true if `text` begins as an option of a store does: with a name and `=`.
pub fn option_at(text: &str) -> bool {
    let name = text.split(',').next().and_then(|option| option.split_once('='));
    name.is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'))
}

impl fmt::Display for StoreChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.folder.display())?;
        if let Some(scheme) = self.scheme {
            write!(f, ",scheme={scheme}")?;
        }
        let sizes =
            [("size", self.size), ("min-object", self.min_object), ("max-object", self.max_object)];
        for (name, size) in sizes {
            if let Some(size) = size {
                write!(f, ",{name}={}", exact(size))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<StoreChoice, String> {
        StoreChoice::read(OsStr::new(text))
    }

    #[test]
    fn a_store_with_options_is_shown_as_it_was_read() {
        let text = "/a,scheme=coss,size=1 GiB,min-object=1 KiB,max-object=8 KiB";
        let store = read(text).expect("sound");
        assert_eq!((store.scheme, store.size), (Some(SchemeName::Coss), Some(ByteSize(1 << 30))));
        assert_eq!(store.sizes(), 1024..=8192);
        assert_eq!(store.to_string(), text);
        for plain in ["/a", "/a,b", "/a,b/c=d"] {
            assert_eq!(read(plain), Ok(StoreChoice::plain(plain.into())), "{plain}");
        }
    }

    #[test]
    fn an_impossible_store_is_refused_with_a_remedy() {
        let cases = [
            ("", "the path of a folder is empty"),
            (",size=1G", "the path of a folder is empty"),
            ("/a,sise=1G", "\"sise\" is not an option of a store; the options are scheme, size"),
            ("/a,scheme=tape", "stream-packetizer"),
            ("/a,size=1K", "a store cannot have 1 KiB; give a size from 16 MiB to 64 TiB"),
            ("/a,min-object=2K,max-object=1K", "min-object 2 KiB is larger than max-object 1 KiB"),
            ("/a,size=much", "size: "),
        ];
        for (text, expected) in cases {
            let refused = read(text).expect_err(text);
            assert!(refused.contains(expected), "{text}: {refused}");
        }
    }
}
