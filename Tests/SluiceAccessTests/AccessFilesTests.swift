import Glibc
import SluiceTLS
import SluiceWire
import TestSupport
import Testing

@testable import SluiceAccess

@Suite("The files that say who may do what")
struct AccessFilesTests {
  private let directory: TemporaryDirectory
  private let keys: TemporaryDirectory
  private static let secret = "0123456789abcdef0123456789abcdef"

  init() throws {
    directory = try TemporaryDirectory()
    keys = try TemporaryDirectory()
  }

  private func write(_ path: String, _ text: String, mode: mode_t = 0o600) throws {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    try #require(descriptor >= 0)
    let bytes = Array(text.utf8)
    #expect(Glibc.write(descriptor, bytes, bytes.count) == bytes.count)
    fchmod(descriptor, mode)
    close(descriptor)
  }

  private func load(_ files: AccessFiles) throws -> (policy: AccessPolicy, warnings: [String]) {
    var warnings: [String] = []
    let policy = try files.load { warnings.append($0) }
    return (policy, warnings)
  }

  private func objection(_ files: AccessFiles) -> String? {
    do {
      _ = try files.load()
      return nil
    } catch {
      return error.description
    }
  }

  private var all: AccessFiles {
    var files = AccessFiles()
    files.users = directory.file("users")
    files.tokenKeys = keys.path
    files.permissions = directory.file("permissions")
    return files
  }

  private func writeAll() throws {
    let hash = try #require(PasswordHash(of: "password", cost: .init(logN: 14, r: 8, p: 1)))
    try write(directory.file("users"), "alice:\(hash.text)\n")
    try write(directory.file("permissions"), "alice publish orders.>\n* subscribe public.>\n", mode: 0o644)
    try write(keys.file("2026.secret"), "\(Self.secret)\n")
    try write(
      keys.file("pair.pem"), String(decoding: try PrivateKey.generate(.ed25519).publicPEM, as: UTF8.self),
      mode: 0o644)
    try write(keys.file(".hidden"), "")
  }

  @Test("files become a policy")
  func policy() throws {
    try writeAll()
    let (policy, warnings) = try load(all)
    #expect(warnings == [])
    #expect(policy.users.count == 1 && policy.tokenKeys.ids == ["2026", "pair"])
    let alice = try policy.authenticate(
      .password("password", user: "alice"), peerName: nil, peerExpires: nil, now: 0)
    #expect(
      alice.permissions.rights(on: "orders.eu") == .publish
        && alice.permissions.rights(on: "public.a") == .subscribe)
    let token = try NewToken(subject: "bob", keyID: "2026", issued: 0, expires: 1000).signed(
      with: try TokenSigner(Array(Self.secret.utf8)))
    let bob = try policy.authenticate(.token(token), peerName: nil, peerExpires: nil, now: 0)
    #expect(bob.permissions.rights(on: "public.a") == .subscribe)
    var strict = AccessFiles()
    strict.certificatesMustBeListed = true
    #expect(try load(strict).policy.certificatesMustBeListed)
  }

  @Test("a file that isn't there, or isn't one, is named")
  func missing() throws {
    try writeAll()
    var files = all
    files.users = directory.file("none")
    #expect(objection(files) == "\(directory.file("none")): cannot be opened: No such file or directory")
    files.users = directory.path
    #expect(objection(files) == "\(directory.path): isn't a file")
    let pipe = directory.file("pipe")
    #expect(mkfifo(pipe, 0o600) == 0)
    files.users = pipe
    #expect(objection(files) == "\(pipe): isn't a file")
    files.users = nil
    files.tokenKeys = directory.file("users")
    #expect(objection(files)?.hasPrefix("\(directory.file("users")): cannot be opened") == true)
    files.tokenKeys = nil
    files.permissions = directory.file("users")
    #expect(objection(files)?.hasPrefix("\(directory.file("users")), line 1: there are no rights") == true)
  }

  @Test(
    "what every user of the machine may change is refused",
    arguments: ["users", "permissions", "2026.secret", "pair.pem"])
  func writable(name: String) throws {
    try writeAll()
    let path = name.contains(".") ? keys.file(name) : directory.file(name)
    chmod(path, 0o602)
    #expect(objection(all)?.hasPrefix("\(path): every user of this machine may change it") == true)
    chmod(path, 0o600)
    #expect(objection(all) == nil)
  }

  @Test("a directory to which every user may add keys is refused")
  func writableDirectory() throws {
    try writeAll()
    for mode: mode_t in [0o777, 0o1777] {
      chmod(keys.path, mode)
      #expect(objection(all)?.hasPrefix("\(keys.path): every user of this machine may change it") == true)
    }
  }

  @Test(
    "a directory in which every user may replace files is warned of, unless they are kept from that as in /tmp"
  )
  func replaceable() throws {
    try writeAll()
    for (mode, count) in [(0o777, 2), (0o1777, 0), (0o755, 0)] as [(mode_t, Int)] {
      chmod(directory.path, mode)
      let warnings = try load(all).warnings
      #expect(warnings.count == count)
      #expect(
        warnings.allSatisfy {
          $0.hasPrefix("every user of this machine may put another file in the place of")
        })
    }
  }

  @Test("secrets that others can read are warned of, and what everybody may know isn't")
  func readable() throws {
    try writeAll()
    for path in [directory.file("users"), keys.file("2026.secret"), keys.file("pair.pem")] {
      chmod(path, 0o644)
    }
    let warnings = try load(all).warnings
    #expect(warnings.count == 2)
    #expect(
      warnings.first?.hasPrefix("every user of this machine can read \(directory.file("users"))") == true)
    #expect(
      warnings.last?.hasPrefix("every user of this machine can read \(keys.file("2026.secret"))") == true)
    #expect(!warnings.contains { $0.contains(Self.secret) })
  }

  @Test("weak hashes, different ones, files that are no keys and no keys at all are warned of")
  func warnings() throws {
    let weak = try #require(PasswordHash(of: "a", cost: .init(logN: 4, r: 1, p: 1)))
    let strong = try #require(PasswordHash(of: "a", cost: .init(logN: 14, r: 8, p: 1)))
    try write(directory.file("users"), "a:\(weak.text)\nb:\(strong.text)\nc:\(strong.text)\n")
    try write(keys.file("README"), "")
    var files = all
    files.permissions = nil
    let warnings = try load(files).warnings
    #expect(warnings.count == 4)
    #expect(warnings.contains { $0.contains("don't all have the same parameters") && $0.contains(": a; ") })
    #expect(warnings.contains { $0.contains("1 hashes are weaker") })
    #expect(warnings.contains { $0.contains("README is no key") })
    #expect(warnings.contains { $0.contains("has no keys: no token will be taken") })
  }

  @Test(
    "a key that can't be used is refused, with its file",
    arguments: [
      (
        "short.secret", "0123456789abcdef0123456789abcde\n", "it has 31 bytes, and a secret needs 32 at least"
      ),
      ("empty.secret", "", "it has 0 bytes"), ("a b.secret", secret, "'a b' can't be the id of a key"),
      ("x.pem", "", "it has no public key in PEM"),
      (
        "pem.secret", "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA\n",
        "it has a key in PEM, which isn't a secret"
      ),
      ("\(String(repeating: "k", count: 65)).secret", secret, "can't be the id of a key: it needs 1 to 64"),
    ])
  func badKeys(name: String, text: String, message: String) throws {
    try write(keys.file(name), text)
    var files = AccessFiles()
    files.tokenKeys = keys.path
    let objection = try #require(self.objection(files))
    #expect(objection.hasPrefix("\(keys.file(name)): ") && objection.contains(message), "\(objection)")
  }

  @Test("a private key among those that check signatures is an error, and so are two keys of one id")
  func privateKey() throws {
    var files = AccessFiles()
    files.tokenKeys = keys.path
    let key = try PrivateKey.generate(.ed25519)
    try write(keys.file("a.pem"), String(decoding: key.pem, as: UTF8.self))
    #expect(objection(files)?.contains("it has a private key, which must stay with the signer") == true)
    try write(keys.file("a.pem"), String(decoding: key.publicPEM, as: UTF8.self))
    #expect(objection(files) == nil)
    try write(keys.file("a.secret"), Self.secret)
    #expect(objection(files)?.contains("there are both a.pem and a.secret") == true)
  }

  @Test("a secret is its bytes, whether a line break follows or not")
  func lineBreaks() throws {
    var fingerprints: Set<[UInt8]> = []
    for end in ["", "\n", "\r\n"] {
      fingerprints.insert(
        TokenKey.secret(try TokenKey.secretBytes(Array((Self.secret + end).utf8))).fingerprint)
    }
    #expect(fingerprints.count == 1)
    #expect(try TokenKey.secretBytes([UInt8](repeating: 0xFF, count: 32)).count == 32)
  }

  @Test("a file that is far too long isn't read to its end")
  func long() throws {
    let path = directory.file("permissions")
    try write(path, "")
    #expect(truncate(path, 1 << 40) == 0)
    var files = AccessFiles()
    files.permissions = path
    #expect(objection(files) == "\(path): is longer than 16777216 bytes, which is the limit")
  }

  @Test("a key for links is the same for all brokers that read it, and random without a file")
  func linkKeys() throws {
    try writeAll()
    func link(_ files: AccessFiles) throws -> (AccessPolicy, String) {
      let policy = try load(files).policy
      let alice = try policy.authenticate(
        .password("password", user: "alice"), peerName: nil, peerExpires: nil, now: 0)
      return (policy, try policy.link(.publish, on: "orders.x", by: alice, until: 1000).text)
    }
    var files = all
    let (first, own) = try link(files)
    // A reloaded policy of the same process knows its links.
    #expect(throws: Never.self) {
      try load(files).policy.authenticate(.token(own), peerName: nil, peerExpires: nil, now: 0)
    }
    files.linkKey = directory.file("link.key")
    try write(directory.file("link.key"), "\(Self.secret)\n")
    let (second, shared) = try link(files)
    #expect(throws: WireError.self) {
      try first.authenticate(.token(shared), peerName: nil, peerExpires: nil, now: 0)
    }
    #expect(throws: WireError.self) {
      try second.authenticate(.token(own), peerName: nil, peerExpires: nil, now: 0)
    }
    #expect(throws: Never.self) {
      try load(files).policy.authenticate(.token(shared), peerName: nil, peerExpires: nil, now: 0)
    }
    try write(directory.file("link.key"), "short")
    #expect(objection(files)?.contains("link.key: it has 5 bytes") == true)
  }

  @Test("the name of anonymous clients isn't a user's")
  func anonymousNames() throws {
    try writeAll()
    var files = all
    files.anonymous = "alice"
    #expect(objection(files)?.contains("'alice' is a user") == true)
    files.anonymous = "guest"
    #expect(try load(files).policy.anonymous == "guest")
  }
}
