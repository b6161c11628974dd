%pair = type { half, [2 x i32] }
define %pair @pairs(half %h, bfloat %b, i128 %w, <2 x double> %d, i32 %i) #0 {
  %r = insertvalue %pair { half 0xH3C00, [2 x i32] [i32 1, i32 -7] }, half %h, 0
  %a = add nsw i128 %w, 36893488147419103232
  %t = trunc i128 %a to i32
  %s = insertvalue %pair %r, i32 %t, 1, 1
  %f = fadd reassoc nnan <2 x double> %d, <double 0x7FF8000000000000, double 1.0e-300>
  %c = fcmp fast olt <2 x double> %f, zeroinitializer
  %sel = select <2 x i1> %c, <2 x double> %f, <2 x double> <double 1.0, double undef>
  %e = extractelement <2 x double> %sel, i32 %i
  %q = fptosi double %e to i32
  %n = fneg bfloat %b
  %m = fmul bfloat %n, 0xR3FC0
  %mf = fpext bfloat %m to float
  %ab = call nnan float @llvm.fabs.f32(float %mf)
  %ff = fdiv float %ab, 0x7FF0000000000000
  %l = fptosi float %ff to i32
  %sum = add i32 %l, %q
  %sh = lshr exact i32 %sum, 3
  %u = call i32 @llvm.ctpop.i32(i32 %sh)
  %z = insertvalue %pair %s, i32 %u, 1, 0
  ret %pair %z
}
declare float @llvm.fabs.f32(float) #1
declare i32 @llvm.ctpop.i32(i32)
attributes #0 = { nounwind "x"="y" }
attributes #1 = { nocallback nofree nosync nounwind willreturn memory(none) }
!llvm.module.flags = !{!0}
!llvm.dbg.cu = !{}
!0 = !{i32 2, !"Debug Info Version", i32 3}
!3 = !{}
