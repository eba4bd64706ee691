//! `weir cert`.

use crate::cli::CertArgs;
use crate::error::CliError;
use crate::output;

pub(crate) fn run(args: &CertArgs) -> Result<u8, CliError> {
    let made = weir_blob::tls::make(&args.dir, &args.names)?;
    for path in [&made.authority, &made.certificate, &made.key] {
        output::print_text(&format!("{}\n", path.display()))?;
    }
    output::talk(&format!(
        "for {}; clients must trust {}",
        args.names.join(", "),
        made.authority.display()
    ));
    Ok(0)
}
