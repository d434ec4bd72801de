//! The upstream side: finding an origin, connecting to it, and one exchange with it. It caches nothing and knows
//! no client; `destination` decides where connections may go.

mod cidr;
mod destination;

pub use cidr::{Cidr, CidrError};
pub use destination::{ChosenBy, DestinationPolicy, DestinationRefusal};
