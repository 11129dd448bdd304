//! Finds libholdfast by pkg-config, or compiles it (feature `bundled`).

#[cfg(not(feature = "bundled"))]
fn main() {
    println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
    let series = concat!(env!("CARGO_PKG_VERSION_MAJOR"), ".", env!("CARGO_PKG_VERSION_MINOR"));
    if let Err(error) = pkg_config::Config::new().atleast_version(series).probe("holdfast") {
        eprintln!("{error}");
        panic!("libholdfast is not found: install it, or enable the feature `bundled`, which compiles it");
    }
}

#[cfg(feature = "bundled")]
fn main() {
    println!("cargo:rerun-if-changed=csrc");
    let mut build = cc::Build::new();
    let sources = std::fs::read_dir("csrc").expect("the C sources are part of this crate");
    for entry in sources {
        let path = entry.expect("a directory that can be read").path();
        if path.extension().is_some_and(|ending| ending == "c") {
            build.file(path);
        }
    }
    if let Ok(include) = std::env::var("DEP_SQLITE3_INCLUDE") {
        build.include(include);
    }
    build
        .include("csrc")
        .std("gnu11")
        .opt_level(2)
        .define("_GNU_SOURCE", None)
        .define("_FILE_OFFSET_BITS", "64")
        .flag("-fvisibility=hidden")
        .compile("holdfast");
    if !cfg!(feature = "bundled-sqlite") {
        pkg_config::Config::new()
            .atleast_version("3.40")
            .probe("sqlite3")
            .expect("SQLite's headers (libsqlite3-dev), or the feature `bundled-sqlite`");
    }
    println!("cargo:rustc-link-lib=dl");
    println!("cargo:rustc-link-lib=pthread");
}
