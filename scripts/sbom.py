"""What a release consists of, as SPDX 2.3 (JSON). Used by scripts/release.py."""

import json
import os
import re
import subprocess
import uuid

# How a library calls itself: what Meson and pkg-config call it, and its licence.
KNOWN = {"libsqlite3": ("sqlite3", "blessing"), "libssl": ("openssl", "Apache-2.0"), "libcrypto": ("openssl", "Apache-2.0"),
         "libhiredis": ("hiredis", "BSD-3-Clause"), "libhiredis_ssl": ("hiredis", "BSD-3-Clause"), "libpq": ("libpq", "PostgreSQL"),
         "libmariadb": ("libmariadb", "LGPL-2.1-only"), "libnghttp2": ("libnghttp2", "MIT"), "libodbc": ("odbc", "LGPL-2.1-or-later"),
         "libzookeeper_mt": ("zookeeper", "Apache-2.0")}


def linked(build):
    """({what is installed: names of what its file is linked with}, {name: version}); libc and its parts are not told."""
    def ask(what):
        return json.loads(subprocess.run(["meson", "introspect", what, build], stdout=subprocess.PIPE, check=True).stdout)
    versions = {d["name"]: d["version"] for d in ask("--dependencies")}
    users, found = {}, {}
    for target in ask("--targets"):
        if not target["installed"] or target["type"] not in ("shared library", "shared module", "executable"):
            continue
        said = subprocess.run(["readelf", "-d", target["filename"][0]], stdout=subprocess.PIPE, check=True, text=True).stdout
        names = {KNOWN[stem][0] for stem in re.findall(r"NEEDED.*\[(\w+)\.so", said) if stem in KNOWN}
        users[target["name"]] = sorted(names)
        found.update({name: versions.get(name, "NOASSERTION") for name in names})
    return users, found


def licence(name):
    return next((terms for known, terms in KNOWN.values() if known == name), "NOASSERTION")


def package(name, version, licence, download="NOASSERTION"):
    return {"SPDXID": "SPDXRef-" + "".join(c if c.isalnum() or c in ".-" else "-" for c in f"{name}-{version}"),
            "name": name, "versionInfo": version, "downloadLocation": download, "filesAnalyzed": False,
            "licenseConcluded": licence, "licenseDeclared": licence, "copyrightText": "NOASSERTION"}


def document(version, when, users, versions, bundled):
    """The text. `users` and `versions` are those of linked(); `bundled` is what packages carry inside: {name: version}."""
    top = package("holdfast", version, "MIT")
    packages, relations = [top], [("SPDXRef-DOCUMENT", "DESCRIBES", top["SPDXID"])]
    theirs = {name: package(name, number, licence(name)) for name, number in sorted(versions.items())}
    for name, needs in sorted(users.items()):
        part = package("holdfast:" + name, version, "MIT")
        packages.append(part)
        relations.append((top["SPDXID"], "CONTAINS", part["SPDXID"]))
        relations += [(part["SPDXID"], "DYNAMIC_LINK", theirs[need]["SPDXID"]) for need in needs]
    packages += theirs.values()
    for name, number in sorted(bundled.items()):
        inside = package(name + "-inside", number, licence(name))
        packages.append(inside)
        relations.append((inside["SPDXID"], "STATIC_LINK", top["SPDXID"]))
    text = {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"holdfast-{version}",
            "creationInfo": {"created": when, "creators": ["Tool: holdfast-scripts-release"]},
            "packages": packages,
            "relationships": [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b} for a, kind, b in relations]}
    # The same release has the same name, and another one another.
    text["documentNamespace"] = "https://holdfast.example/spdx/" + str(uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(text, sort_keys=True)))
    return json.dumps(text, indent=1, sort_keys=True) + "\n"


def write(path, *what):
    with open(path, "w", encoding="utf-8") as file:
        file.write(document(*what))
    return os.path.basename(path)
