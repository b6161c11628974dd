// Softmax and layer norm of 4096 x 4096 f32 on the host, against a copy of the matrix by as many threads.
//   rows_host [results.json]
#include <barrier>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <thread>

#include "element.h"
#include "measure.h"
#include "row_programs.h"
#include "subject.h"

namespace {

using bench::Json;
using bench::Samples;

constexpr int64_t kRows = 4096, kCols = 4096;
constexpr double kBytes = 2.0 * kRows * kCols * sizeof(float);  // one read and one write of the matrix

// memcpy split evenly over threads that wait at a barrier between copies.
class ThreadedCopy {
 public:
  ThreadedCopy(float* to, const float* from, size_t bytes, int threads)
      : to_(reinterpret_cast<char*>(to)),
        from_(reinterpret_cast<const char*>(from)),
        bytes_(bytes),
        threads_(threads),
        gate_(threads) {
    for (int i = 1; i < threads; ++i) pool_.emplace_back([this, i] { work(i); });
  }
  ~ThreadedCopy() {
    stop_ = true;
    gate_.arrive_and_wait();
    for (std::thread& thread : pool_) thread.join();
  }
  void run() {
    gate_.arrive_and_wait();
    copy_part(0);
    gate_.arrive_and_wait();
  }

 private:
  void work(int index) {
    for (;;) {
      gate_.arrive_and_wait();
      if (stop_) return;
      copy_part(index);
      gate_.arrive_and_wait();
    }
  }
  void copy_part(int index) {
    const auto edge = [&](int i) {
      return bytes_ * static_cast<size_t>(i) / static_cast<size_t>(threads_) / 64 * 64;
    };
    const size_t begin = edge(index), end = index + 1 == threads_ ? bytes_ : edge(index + 1);
    std::memcpy(to_ + begin, from_ + begin, end - begin);
  }

  char* to_;
  const char* from_;
  size_t bytes_;
  int threads_;
  bool stop_ = false;  // written before, read after the barrier
  std::barrier<> gate_;
  std::vector<std::thread> pool_;
};

// Every row of a softmax sums to 1; every row of a layer norm with gamma 1 and beta 0 has mean 0 and
// variance 1.
void require_meaning(const bench::Array<float>& y, bool softmax) {
  for (int64_t row = 0; row < kRows; ++row) {
    double sum = 0, squares = 0;
    for (int64_t col = 0; col < kCols; ++col) {
      const double value = y[static_cast<size_t>(row * kCols + col)];
      sum += value;
      squares += value * value;
    }
    const bool right = softmax ? std::fabs(sum - 1) < 1e-4
                               : std::fabs(sum / kCols) < 1e-4 && std::fabs(squares / kCols - 1) < 1e-3;
    if (!right) tool::fail("row " + std::to_string(row) + " is wrong");
  }
}

Json record(const Samples& samples) {
  Json out = samples.to_json();
  out["gb_per_s"] = kBytes / samples.median() * 1e-9;
  return out;
}

Json measure(const char* name, const bench::Subject& subject, ThreadedCopy& copy,
             const bench::Array<float>& y, bool softmax) {
  subject.launch();
  require_meaning(y, softmax);
  const auto samples = bench::side_by_side({[&] { subject.launch(); }, [&] { copy.run(); }}, 7, 0.15);
  const double ratio = samples[1].median() / samples[0].median();
  std::printf("%-10s %8.3f ms %7.2f GB/s   memcpy %8.3f ms %7.2f GB/s   ratio %.2f\n", name,
              samples[0].median() * 1e3, kBytes / samples[0].median() * 1e-9, samples[1].median() * 1e3,
              kBytes / samples[1].median() * 1e-9, ratio);
  std::fflush(stdout);
  Json out;
  out["name"] = name;
  out["shape"] = std::to_string(kRows) + "x" + std::to_string(kCols) + " f32";
  out["ours"] = record(samples[0]);
  out["memcpy"] = record(samples[1]);
  out["ours_over_memcpy"] = ratio;
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  const tool::Context context = tool::make_context();
  const row_spec spec = row_spec_make(TL_F32, kCols, 0);
  const size_t count = static_cast<size_t>(kRows * kCols);
  bench::Array<float> x(count), y(count), copied(count), gamma(kCols, 1.0f), beta(kCols, 0.0f);
  element_random(TL_F32, x.data(), count, 1);
  ThreadedCopy copy(copied.data(), x.data(), count * sizeof(float), bench::cores());

  bench::Subject softmax(context, "softmax", [&](tl_builder* b) { softmax_build(b, &spec); });
  softmax.set_arguments(
      {bench::integer(kRows), bench::pointer(TL_F32, x.data()), bench::pointer(TL_F32, y.data())});
  bench::Subject layernorm(context, "layernorm", [&](tl_builder* b) { layernorm_build(b, &spec); });
  layernorm.set_arguments({bench::integer(kRows), bench::pointer(TL_F32, x.data()),
                           bench::pointer(TL_F32, gamma.data()), bench::pointer(TL_F32, beta.data()),
                           bench::real(1e-5), bench::pointer(TL_F32, y.data())});

  std::printf("%d threads, %lld x %lld f32\n", bench::cores(), static_cast<long long>(kRows),
              static_cast<long long>(kCols));
  Json results;
  results["rows"] = Json::array(
      {measure("softmax", softmax, copy, y, true), measure("layernorm", layernorm, copy, y, false)});
  if (argc > 1) bench::write_results(argv[1], results);
  return 0;
}
