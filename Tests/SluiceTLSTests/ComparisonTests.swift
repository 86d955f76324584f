import SluiceTLS
import Testing

@Suite("Comparing secrets")
struct ComparisonTests {
  @Test("equal bytes are equal, all others aren't")
  func equality() {
    #expect(isEqualInConstantTime([], []))
    #expect(isEqualInConstantTime([1, 2, 3], [1, 2, 3]))
    #expect(!isEqualInConstantTime([1, 2, 3], [1, 2, 4]))
    #expect(!isEqualInConstantTime([0, 2, 3], [1, 2, 3]))
    #expect(!isEqualInConstantTime([1, 2], [1, 2, 3]))
    #expect(!isEqualInConstantTime([], [0]))
  }
}
