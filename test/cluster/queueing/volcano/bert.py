"""BERT pretraining on whole trn1.32xlarge as a component of TorchX, in the shape of aws-neuron-eks-samples (dp_bert_hf_pretrain)."""

from torchx import specs

ENVIRONMENT = {
    "CCOM_SOCKET_IFNAME": "eth0",
    "FI_PROVIDER": "efa",
    "FI_EFA_USE_DEVICE_RDMA": "1",
    "FI_EFA_FORK_SAFE": "1",
    "NEURON_RT_RESET_CORES": "1",
    "XLA_TRANSFER_SEED_ASYNC": "1",
    "NEURON_CC_FLAGS": f"--cache_dir=/data/neuron_cache/bert_{specs.macros.replica_id}",
    "TRANSFORMERS_CACHE": f"/data/transformers_cache/bert_{specs.macros.replica_id}",
}


def bert(image: str, script: str = "dp_bert_large_hf_pretrain_hdf5.py", nodes: int = 2) -> specs.AppDef:
    """Pretrains BERT.

    Args:
        image: has the script and torch-neuronx
        script: what each of a node's 32 processes runs
        nodes: how many
    """
    rendezvous = f"--rdzv_backend etcd --rdzv_endpoint etcd-server:2379 --rdzv_id {specs.macros.app_id}"
    trainer = specs.Role(
        name="trainer",
        image=image,
        entrypoint="bash",
        args=["-c", f"torchrun {rendezvous} --nnodes {nodes} --nproc_per_node 32 {script}"],
        num_replicas=nodes,
        resource=specs.Resource(
            cpu=0,
            gpu=0,
            memMB=0,
            capabilities={"node.kubernetes.io/instance-type": "trn1.32xlarge"},
            devices={"aws.amazon.com/neuron": 16, "vpc.amazonaws.com/efa": 8},
        ),
        env=ENVIRONMENT,
        max_retries=3,
        retry_policy=specs.RetryPolicy.APPLICATION,
        mounts=[specs.VolumeMount(src="fsx-claim", dst_path="/data")],
    )
    return specs.AppDef(name="bert", roles=[trainer])
