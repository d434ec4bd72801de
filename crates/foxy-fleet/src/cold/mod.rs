//! The cold tier: stored responses in a store that speaks S3. Records that were asked for again go
//! there, gathered in *segments* of up to 16 MiB. Each segment is one object of the store.
//!
//! - `segment` and `manifest` define the objects. A *manifest* lists the segments of one node, the
//!   records that the node has removed, and its purges.
//! - `index` knows the place of each record. `health` tells when to ask the store. Both do no IO.
//! - `remote` sends requests to the store, and counts them.
//! - `state` is what the proxy and the thread share. `tier` is the
//!   proxy's side. `worker` is the thread that talks to the store: `gathering` writes
//!   segments, `reading` reads records, `publishing` reads and writes manifests.
//! - `keeper` confirms a purge when the manifest has it.
//!
//! Each node has a random number, the *era* of its purge list. A node that has lost its disk draws
//! a new era, and treats its old segments like those of another node.

pub mod figures;
mod gathering;
mod health;
mod index;
mod keeper;
mod manifest;
mod publishing;
mod reading;
pub mod remote;
mod segment;
mod state;
pub mod tier;
mod worker;
