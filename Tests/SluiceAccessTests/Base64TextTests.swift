import TestSupport
import Testing

@testable import SluiceAccess

@Suite("Base 64 without padding")
struct Base64TextTests {
  @Test("every length comes back, and each value has one text")
  func roundTrip() {
    var random = SeededRandom.printed()
    for count in 0..<70 {
      let bytes = random.bytes(count)
      for alphabet in [Base64Text.standard, .url] {
        let text = alphabet.encode(bytes)
        #expect(alphabet.decode(text.utf8) == bytes)
        #expect(alphabet.decode((text + "=").utf8) == nil)
      }
    }
  }

  @Test("what RFC 4648 has as examples")
  func examples() {
    let table = [
      ("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg"), ("fooba", "Zm9vYmE"),
      ("foobar", "Zm9vYmFy"),
    ]
    for (plain, text) in table {
      #expect(Base64Text.url.encode(plain.utf8) == text)
      #expect(Base64Text.url.decode(text.utf8) == Array(plain.utf8))
    }
    #expect(
      Base64Text.url.encode([0xFB, 0xFF]) == "-_8" && Base64Text.standard.encode([0xFB, 0xFF]) == "+/8")
  }

  @Test(
    "other letters, padding and bits that mean nothing are refused",
    arguments: ["Z", "Zh", "Zm9", "Zg==", "Z g", "Zm9v\n", "Zm+v", "Zm9vZ", "é"])
  func refusals(text: String) {
    #expect(Base64Text.url.decode(text.utf8) == nil)
  }
}
