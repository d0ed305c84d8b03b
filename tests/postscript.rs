use crate::support::printed::{run, text};
use crate::support::program::rows;

#[test]
fn postscript_is_read_by_ghostscript_or_rejected_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let drawn: String = text(4, 30, &[])
        .iter()
        .zip(0..)
        .map(|(line, number)| format!("72 {} moveto ({line}) show\n", 720 - 14 * number))
        .collect();
    let program = format!("%!PS-Adobe-3.0\n/Helvetica findfont 12 scalefont setfont\n{drawn}showpage\n");
    let documents = [
        ("a.ps", "application/postscript", program.clone().into_bytes()),
        ("b.ps", "application/octet-stream", program.into_bytes()),
        ("loop.ps", "application/postscript", b"%!PS\n{} loop\n".to_vec()),
        ("wrong.ps", "application/postscript", b"%!PS\nno such operator\n".to_vec()),
        ("files.ps", "application/postscript", b"%!PS\n(/etc/passwd) (r) file 100 string readline\n".to_vec()),
    ];
    let seconds = "input.limits.printed_seconds=1";
    let (output, reasons, message) = run(folder.path(), &documents, &[seconds]);
    if std::process::Command::new("gs").arg("--version").output().is_err() {
        assert_eq!(reasons, ["no_converter"; 5], "{message}");
        let kinds = if cfg!(feature = "pdf") { "PostScript" } else { "PDF or PostScript" };
        assert!(message.contains(&format!("5 {kinds} documents were not read")), "{message}");
        return;
    }
    assert_eq!(reasons, ["postscript_failed"; 3], "{message}");
    assert_eq!(rows(&output, "pairs").len(), 1);

    let folder = tempfile::tempdir().unwrap();
    let (_, reasons, _) = run(folder.path(), &documents, &["input.printed=pdf"]);
    assert_eq!(reasons, ["not_text"; 5]);
}
