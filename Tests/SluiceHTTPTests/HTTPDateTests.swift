import Testing

@testable import SluiceHTTP

@Suite("The time of an answer")
struct HTTPDateTests {
  @Test(
    "a time is told to the second, in the one form that servers write",
    arguments: [
      (0, "Thu, 01 Jan 1970 00:00:00 GMT"), (999, "Thu, 01 Jan 1970 00:00:00 GMT"),
      (-1, "Wed, 31 Dec 1969 23:59:59 GMT"),
      // RFC 9110, 5.6.7.
      (784_111_777_000, "Sun, 06 Nov 1994 08:49:37 GMT"), (951_782_400_000, "Tue, 29 Feb 2000 00:00:00 GMT"),
      (1_798_761_599_999, "Thu, 31 Dec 2026 23:59:59 GMT"),
      (253_402_300_799_000, "Fri, 31 Dec 9999 23:59:59 GMT"),
      (.max, "Sun, 17 Aug 292278994 07:12:55 GMT"), (.min, "Sun, 16 May -292275055 16:47:04 GMT"),
    ] as [(Int64, String)])
  func text(_ time: Int64, _ text: String) {
    #expect(HTTPDate.text(time) == text)
  }
}
