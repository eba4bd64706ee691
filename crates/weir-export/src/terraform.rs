//! Disks and their attachment to a machine, or a managed instance, as a Terraform module.
//!
//! A module describes the whole state, and removed items are destroyed at the next apply. Disks
//! that are no longer in the layout therefore stay in the module, so that none is destroyed without
//! a change by hand.
//!
//! | module | holds |
//! |---|---|
//! | `module` | common blocks of all modules |
//! | `attached` | disks of AWS and Google Cloud, which have no host cache and no tiers |
//! | one per cloud | `azure`, `aws`, `google` |

mod attached;
mod aws;
mod azure;
mod google;
mod module;

use crate::change::Change;
use crate::error::ExportError;
use crate::options::Options;
use crate::script::Script;
use crate::site::Cloud;

pub(crate) fn write(
    script: &mut Script,
    change: &Change,
    options: &Options,
) -> Result<(), ExportError> {
    match change.new.cloud {
        Some(Cloud::Aws) => aws::write(script, change, options),
        Some(Cloud::Google) => google::write(script, change, options),
        // This branch also rejects editions without a cloud.
        Some(Cloud::Azure) | None => azure::write(script, change, options),
    }
}
