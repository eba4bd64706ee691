//! Disks and their attachment to a machine, or a managed instance, as a module of Terraform.
//!
//! A module says all that is to be: what is taken out of it is destroyed at the next apply. So
//! what the layout has no more stays in, and no disk can be destroyed without a change by hand.
//!
//! | module | holds |
//! |---|---|
//! | `module` | blocks that all modules have |
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
    match change.new.cloud() {
        Some(Cloud::Aws) => aws::write(script, change, options),
        Some(Cloud::Google) => google::write(script, change, options),
        // It also says what no cloud's edition is.
        Some(Cloud::Azure) | None => azure::write(script, change, options),
    }
}
