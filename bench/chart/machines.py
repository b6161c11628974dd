"""Which machines and versions the figures are of."""

from chart.family import Family, Table, counted


def processor(machine):
    kind = f"family {machine['family']}, model {machine['model']}"
    return f"{machine['processor']} ({kind}), {counted(machine['cores'])}"


def llvm(library):
    return library["backend"].split(";")[0]


def gpu(h200):
    versions, cudnn = h200["versions"], h200["versions"]["cudnn"]
    software = [
        f"CUDA {versions['cuda']}",
        f"PyTorch {versions['torch']}",
        f"Triton {versions['triton']}",
        f"cuDNN {cudnn // 10000}.{cudnn // 100 % 100}",
        llvm(h200["library"]),
    ]
    card = f"{h200['gpu']}, {h200['power_limit_watts']:.0f} W, driver {h200['driver']}"
    commits = (
        f"{h200['source_commit']}; attention but for few queries, and row programs: "
        f"{h200['attention']['source_commit']}; Ampere form: {h200['ampere_form']['library']['commit'][:7]}"
    )
    return [
        "on a GPU",
        f"{card}; host: {processor(h200['machine'])}",
        ", ".join(software),
        commits,
        h200["date"],
    ]


def host(what, results, others):
    """`others`: names of the peers' libraries with their versions."""
    machine, library = results["machine"], results["machine"]["tilegen"]
    blas = f"OpenBLAS {results['openblas'].split()[1]}"
    software = f"{', '.join([blas, *others])}, GCC {machine['compiler']}, {llvm(library)}"
    cpu = f"{processor(machine)}, virtual"
    return [what, cpu, software, library["commit"][:7], results["date"][:10]]


def machines(results):
    idle = results["unsampled"]["launch_idle"]
    last = [
        "of a launch, without a GPU",
        idle["processor"],
        f"`{idle['driver']}` as the driver",
        f"stated by {idle['commit']}",
        idle["date"],
    ]
    one_core, torch = results["gemm_one_core"], results["attention_host"]["machine"]["torch"]
    amx, amx_torch = results["gemm_host_amx"], results["attention_host_amx"]["machine"]["torch"]
    hosts = [
        host("on the host", results["gemm_host"], []),
        host("products and attention there", one_core, [one_core["onednn"], f"PyTorch {torch}"]),
        host("with matrix registers (AMX)", amx, [amx["onednn"], f"PyTorch {amx_torch}"]),
    ]
    head = ["figures", "machine", "software", "commit", "date"]
    return Family("machines", None, [Table(head, [gpu(results["h200"]), *hosts, last])])
