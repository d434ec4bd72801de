//! An object's identity on the wire: everything the origin needs to answer is in the path, so it
//! keeps no state.

use std::fmt;

/// One synthetic object: `/o/ID/SIZE/VERSION`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Object {
    /// Which object.
    pub id: u64,
    /// Body length in bytes.
    pub size: u64,
    /// Which state of it; another version is another body.
    pub version: u64,
}

impl Object {
    /// Reads a path (a query is ignored). `None` when it does not name an object.
    pub fn parse(path: &str) -> Option<Self> {
        let path = path.split('?').next()?;
        let mut parts = path.strip_prefix("/o/")?.split('/');
        let mut number =
            || parts.next().filter(|text| text.bytes().all(|b| b.is_ascii_digit()))?.parse().ok();
        let object = Self { id: number()?, size: number()?, version: number()? };
        parts.next().is_none().then_some(object)
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/o/{}/{}/{}", self.id, self.size, self.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_round_trip_and_strangers_are_refused() {
        let object = Object { id: 12, size: 8192, version: 3 };
        assert_eq!(Object::parse(&object.to_string()), Some(object));
        assert_eq!(Object::parse("/o/12/8192/3?max-age=1"), Some(object));
        for stranger in [
            "/",
            "/o/1/2",
            "/o/1/2/3/4",
            "/o/x/2/3",
            "/o/+1/2/3",
            "/o//2/3",
            "/o/1/2/99999999999999999999",
        ] {
            assert_eq!(Object::parse(stranger), None, "{stranger}");
        }
    }
}
