"""The bill of materials of an image, as SPDX 2.3 JSON: every file, the Debian package it is from, and the packages whose
code was linked in statically or compiled in from headers, each with version and licence."""
import datetime
import hashlib
import json
import re
import urllib.parse

import debian


def identifier(kind, text):
    return f"SPDXRef-{kind}-" + re.sub(r"[^A-Za-z0-9.-]", "-", text)


def verification_code(sha1s):
    return {"packageVerificationCodeValue": hashlib.sha1("".join(sorted(sha1s)).encode()).hexdigest()}


class Maker:
    """add() takes the root directories of an image's layers, in order; write() says what is in all of them so far."""

    def __init__(self, packages, version, arch, epoch):
        self.packages, self.version, self.arch = packages, version, arch
        self.created = datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.files = {}  # path in the image -> SPDX file

    def add(self, root):
        for path in sorted(root.rglob("*")):
            if path.is_symlink() or not path.is_file():
                continue
            name, content = str(path.relative_to(root)), path.read_bytes()
            self.files[name] = {
                "fileName": "./" + name,
                "SPDXID": identifier("File", name),
                "checksums": [{"algorithm": "SHA1", "checksumValue": hashlib.sha1(content).hexdigest()},
                              {"algorithm": "SHA256", "checksumValue": hashlib.sha256(content).hexdigest()}],
                "licenseConcluded": "NOASSERTION",
                "copyrightText": "NOASSERTION",
            }

    def owner(self, name):
        """The Debian package of a file in the image, None for our own."""
        documentation = re.fullmatch(r"usr/share/doc/([^/]+)/copyright|var/lib/dpkg/status\.d/([^/]+)", name)
        if documentation:
            return None
        return self.packages.owner.get(debian.without_usr("/" + name))

    def own_package(self, title):
        return {
            "name": title, "SPDXID": identifier("Package", title), "versionInfo": self.version,
            "downloadLocation": "NOASSERTION", "primaryPackagePurpose": "CONTAINER",
            "licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0", "copyrightText": "NOASSERTION",
        }

    def debian_package(self, package):
        fact = self.packages.fact(package)
        address = (f"pkg:deb/debian/{urllib.parse.quote(fact['name'], safe='')}@{urllib.parse.quote(fact['version'], safe='')}"
                   f"?arch={fact['arch']}&distro=debian-12")
        return {
            "name": fact["name"], "SPDXID": identifier("Package", package), "versionInfo": fact["version"],
            "supplier": "Organization: Debian", "downloadLocation": "NOASSERTION",
            "sourceInfo": f"built by Debian from its source package {fact['source']} {fact['source_version']}",
            **({"homepage": fact["homepage"]} if fact["homepage"] else {}),
            "licenseConcluded": "NOASSERTION", "licenseDeclared": identifier("", package).replace("SPDXRef--", "LicenseRef-"),
            "copyrightText": "NOASSERTION",
            "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": address}],
        }

    def licence(self, package):
        return {
            "licenseId": identifier("", package).replace("SPDXRef--", "LicenseRef-"),
            "name": f"Licences of {self.packages.fact(package)['name']}, as Debian lists them",
            "extractedText": debian.copyright_file(package).read_text(errors="replace"),
        }

    def write(self, target, title, shared, static):
        """`shared`: packages that files of the image are from. `static`: packages whose code is inside our programs."""
        own = self.own_package(title)
        by_package = {}
        for name in sorted(self.files):
            by_package.setdefault(self.owner(name), []).append(name)
        unlisted = set(by_package) - {None} - shared
        if unlisted:
            raise SystemExit(f"stage.py: files from packages that are not listed: {sorted(unlisted)}")

        packages, relationships = [own], [("SPDXRef-DOCUMENT", "DESCRIBES", own["SPDXID"])]
        for package in sorted(shared | static):
            packages.append(self.debian_package(package))
            relationships.append((own["SPDXID"], "STATIC_LINK" if package in static else "DYNAMIC_LINK", packages[-1]["SPDXID"]))
        for package, entry in zip([None, *sorted(shared | static)], packages):
            names = by_package.get(package, [])
            entry["filesAnalyzed"] = bool(names)
            if names:
                entry["packageVerificationCode"] = verification_code(
                    self.files[name]["checksums"][0]["checksumValue"] for name in names)
            relationships += [(entry["SPDXID"], "CONTAINS", self.files[name]["SPDXID"]) for name in names]

        document = {
            "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
            "name": f"{title}-{self.version}-{self.arch}",
            "creationInfo": {"created": self.created, "creators": ["Tool: neuron-agent/manifests/image/stage.py"]},
            "packages": packages,
            "files": [self.files[name] for name in sorted(self.files)],
            "relationships": [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b} for a, kind, b in relationships],
            "hasExtractedLicensingInfos": [self.licence(package) for package in sorted(shared | static)],
        }
        # Two documents of different content never share a namespace, two of the same content always do.
        digest = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
        document["documentNamespace"] = f"https://spdx.org/spdxdocs/{document['name']}-{digest}"
        target.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
