import Foundation
import SluiceWire
import Testing

@testable import SluiceAccess

/// The examples in Formats.md can be parsed, and match the written files.
@Suite("The page about files and tokens")
struct FormatsTests {
  private let page: String

  init() throws {
    let file = URL(filePath: #filePath).appending(
      path: "../../../Sources/SluiceAccess/SluiceAccess.docc/Formats.md")
    page = try String(contentsOf: file.standardized, encoding: .utf8)
  }

  /// The text of the code block of that kind.
  private func block(_ kind: String) throws -> String {
    let begin = try #require(page.range(of: "```\(kind)\n"))
    let end = try #require(page.range(of: "```", range: begin.upperBound..<page.endIndex))
    return String(page[begin.upperBound..<end.lowerBound])
  }

  @Test("the users on it can be read, and have the passwords that it says")
  func users() throws {
    let file = try UsersFile(Array(try block("text").utf8), path: "page")
    #expect(file.users.map(\.name) == ["alice"])
    #expect(file.users.first?.hash.matches("correct horse") == true)
  }

  @Test("the permissions on it are what it says, and so are the rights")
  func permissions() throws {
    let file = try PermissionsFile(Array(try block("permissions").utf8), path: "page")
    #expect(file.commonPermissions.rights(on: "news.today") == .subscribe)
    #expect(file.permissions["alice"]?.rights(on: "invoices.7") == [.subscribe, .create])
    #expect(file.permissions["shop"]?.rights(on: "orders.eu.1") == [.publish, .create])
    #expect(file.permissions["Bob Smith"]?.rights(on: "smith.x") == .all)
    let lamp = file.commonPermissions.bound(to: PermissionSubject(user: "home", clientID: "lamp"))
    #expect(lamp.rights(on: "devices.home.lamp.x") == [.publish, .create])
    for name in Rights.names.map(\.value) + ["all"] { #expect(page.contains("| `\(name)` |"), "\(name)") }
    #expect(page.contains("\(PermissionsFile.patternLimit / 1000),000 patterns"))
  }

  @Test("the token on it is signed with the secret on it, and is what is made of its claims")
  func token() throws {
    let begin = try #require(page.range(of: "that contains `"))
    let secret = Array(page[begin.upperBound...].prefix { $0 != "`" }.utf8)
    let text = try block("token").trimmingCharacters(in: .newlines)
    let keys: TokenKeys = ["2026": .secret(secret)]
    let claims = try keys.verify(text, now: 1_767_225_600_000).claims
    #expect(claims.subject == "shop" && claims.permissions?.rights(on: "orders.eu") == .publish)
    let inspection = try TokenInspection(text)
    #expect(try "\(inspection.headerJSON)\n\(inspection.claimsJSON)\n" == block("json"))
    let made = NewToken(
      subject: "shop", keyID: "2026", issued: 1_767_225_600_000, expires: 1_893_456_000_000,
      permissions: Permissions([.init(.publish, on: try TopicPattern("orders.>"))]))
    #expect(try made.signed(with: .secret(secret)) == text)
  }

  @Test("the limits on it are those that hold")
  func limits() {
    #expect(page.contains("accepted up to \(TokenKeys.leeway / 1000) seconds earlier"))
    #expect(page.contains("4,096 bytes at most") && TokenText.maximumLength == 4096)
    #expect(page.contains("32 at least") && TokenKey.minimumSecret == 32)
    #expect(page.contains("1 to 255 bytes") && IdentityRules.maximumLength == 255)
    #expect(page.contains("up to 64 ASCII") && TokenKeyID.maximumLength == 64)
  }
}
